#include "loss_report.h"

#include <string.h>

void say_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
              const char *text)
{
    const losses *l = ctx;
    if (l->casts_only && strcmp(rule, "heft/cast") != 0 && severity != HEFT_FAULT)
        return;
    /* Always print a note about tied tensors: nothing is lost, but the target grows. */
    if (severity == HEFT_NOTE && !l->verbose && strcmp(rule, "heft/tied") != 0)
        return;
    message_print(&(message){ .kind = MESSAGE_LOSS,
                              .severity = severity,
                              .file = l->path,
                              .rule = rule,
                              .text = text,
                              .tensor = tensor,
                              .offset = HEFT_NOWHERE });
}
