/* statistics.h - statistics of many tensors, on all processors. */
#ifndef HEFT_CLI_STATISTICS_H
#define HEFT_CLI_STATISTICS_H
#include "checks.h"
#include "model.h"
#include "summary.h"

typedef struct statistics_options {
    bool verifies; /* a wrong digest of the bytes read is an error, unless --no-verify */
    bool quantiles;
    /* For a share: the tensors of all shares, and where a line with CRCs goes; or NULL. */
    const selection *all;
    outbuf *crcs;
} statistics_options;

/* Summarise the selected tensors into a malloc'ed array, in the order of the selection. Return an
 * exit code; after an error *out is NULL. */
int statistics_compute(summary **out, const heft_file *f, const char *path, const selection *chosen,
                       const statistics_options *options);
/* Begin checks of the tensors that all shares read, to join their CRCs. Return an exit code. */
int statistics_begin_join(checks *c, const heft_file *f, const char *path, const selection *all);

#endif
