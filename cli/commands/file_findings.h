/* file_findings.h - the report of a check of whole files, in the form of `heft verify`. */
#ifndef HEFT_CLI_FILE_FINDINGS_H
#define HEFT_CLI_FILE_FINDINGS_H
#include "process/command_session.h"
#include "process/finding.h"

typedef struct file_findings {
    outbuf o;
    json all; /* the report */
    finding_list list;
    bool as_json, strict; /* strict: warnings are failures */
    const char *path;     /* argument of the command */
    uint32_t faults, warnings;
    uint64_t bytes; /* bytes compared */
} file_findings;

/* Begin the report on standard output. */
void findings_open(file_findings *f, const session *s, bool as_json, bool is_list);
/* Begin the part about one argument. */
void findings_begin(file_findings *f, const char *path);
/* Report a finding about `length` bytes at `offset` of the file `name`. */
void findings_add(file_findings *f, heft_severity severity, const char *rule, const char *name,
                  heft_range where, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* End the part about one argument: `covers` states the meaning of a good result, `failure` is NULL
 * or the error that was printed. Return CODE_DONE or CODE_FOUND. */
int findings_end(file_findings *f, const char *covers, const char *failure);
/* End the report; return the exit code. */
int findings_close(file_findings *f, bool is_list, int code);

#endif
