/* delta_report.h - what the commands delta and apply print about a delta. */
#ifndef HEFT_CLI_DELTA_REPORT_H
#define HEFT_CLI_DELTA_REPORT_H
#include <heft/delta.h>

#include "commands/job.h"

typedef struct delta_summary {
    const session *session;
    const char *path; /* the file that was written; NULL: none */
    heft_delta_sums sums;
    bool as_json;
    const char *verb; /* NULL: it is done */
} delta_summary;

/* Print how many tensors changed in which way: always as a result if nothing was written or JSON
 * is asked for, else as a message with --verbose. Return an exit code. */
int delta_report(const delta_summary *s);
/* keep_loss() with a job as context. A heft_loss_fn. */
void keep_loss_of_job(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                      const char *text);

#endif
