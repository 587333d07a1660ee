/* finding.h - print findings and the verdict about a file, as text or JSON. */
#ifndef HEFT_CLI_FINDING_H
#define HEFT_CLI_FINDING_H
#include <heft/check.h>
#include <heft/doctor.h>

#include "process/term.h"
#include "text/jsonout.h"

typedef struct finding {
    const char *file; /* name in a line of text */
    heft_severity severity;
    const char *rule, *text;
    heft_range where;       /* offset HEFT_NOWHERE: no particular bytes */
    heft_str tensor, shard; /* ptr NULL: none */
    const char *path;       /* file below the argument, for JSON; where the place is; or NULL */
    const heft_diagnosis *diagnosis;     /* JSON with its kind and advice; or NULL */
    const heft_scan_finding *in_pickles; /* JSON with the import; or NULL */
} finding;

/* The findings about one file. */
typedef struct finding_list {
    outbuf *o; /* text is printed at once */
    bool as_json;
    outbuf collected; /* JSON, until the file is done */
    json j;
} finding_list;

/* Return "note", "warning" or "fault". */
const char *severity_name(heft_severity s);
/* Return the finding of the library about an open file. */
finding finding_of(const heft_file *f, const heft_finding *x);

/* Print "FILE: SEVERITY: RULE: text (tensor "w", at byte 10)" and a newline. */
void finding_print(outbuf *o, const finding *x);
/* Write an object on a line of its own. */
void finding_json(json *j, const finding *x);
/* Print "FILE: WORD" in green or red, for a good or a bad result; file NULL: the word only. */
void verdict_print(outbuf *o, const char *file, bool ok, const char *word);
/* Return "ok" or "failed". */
const char *verdict_word(bool ok);

void finding_list_begin(finding_list *l, outbuf *o, bool as_json);
void finding_list_add(finding_list *l, const finding *x);
/* Write the list as the member "findings". */
void finding_list_json(json *j, const finding_list *l);
void finding_list_end(finding_list *l);

/* Begin the JSON about a file with its name, and end it: failure is why the file could not be
 * checked, or NULL. */
void finding_report_begin(json *j, const char *file);
void finding_report_end(json *j, const char *failure);

#endif
