/* loss_report.h - says what a target cannot carry, as the library reports it. */
#ifndef HEFT_CLI_LOSS_REPORT_H
#define HEFT_CLI_LOSS_REPORT_H
#include "cmd.h"

typedef struct losses {
    const char *path; /* of the input */
    bool verbose;     /* notes, too */
} losses;

/* A heft_loss_fn; ctx is a losses. */
void say_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
              const char *text);

#endif
