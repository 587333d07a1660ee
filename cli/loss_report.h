/* loss_report.h - print what the target format cannot represent, as the library reports it. */
#ifndef HEFT_CLI_LOSS_REPORT_H
#define HEFT_CLI_LOSS_REPORT_H
#include "cmd.h"
#include "message_groups.h"

typedef struct losses {
    const char *path; /* of the input */
    bool verbose;     /* print notes, too */
    bool casts_only;  /* leave out losses that are known before the conversion */
    message_groups groups;
} losses;

/* Keep one loss for losses_print(). A heft_loss_fn; ctx is a `losses`. */
void keep_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
               const char *text);
/* Print the losses since the last call, one line for each rule. */
void losses_print(losses *l);

#endif
