/* report.h - the figures of `heft report`, and the document that the page reads. */
#ifndef HEFT_CLI_REPORT_H
#define HEFT_CLI_REPORT_H
#include "commands/report_comparison.h"
#include "text/jsonout.h"
#include "values/summary.h"

enum {
    REPORT_FINDINGS = 10000, /* findings in the page; further ones are counted */
    REPORT_VALUES = 5000,    /* values of metadata in the page */
    REPORT_ITEMS = 20,       /* items of each list of metadata */
    REPORT_TEXT = 2000       /* bytes of a value in the page */
};

typedef struct report {
    const model_view *v; /* its tensors are those of the page */
    const heft_file *f;  /* the file as it was opened */
    const char *path;
    summary *sums;            /* of every tensor; NULL with --quick */
    outbuf findings;          /* JSON of the first REPORT_FINDINGS findings, without the brackets */
    json findings_json;       /* writes into findings */
    uint32_t listed, omitted; /* findings in the page, and findings that are only counted */
    heft_verify_result checked;
    const compared *other; /* the comparison with another file, or NULL */
} report;

/* Add a finding of heft_file_verify(); ctx is the report. */
void report_add_finding(void *ctx, const heft_finding *x);

/* Write the whole page into the sink, which the caller closes. */
heft_status report_write(heft_sink *sink, const report *r, heft_error *err);

#endif
