#include "loss_report.h"

#include <string.h>

void keep_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
               const char *text)
{
    losses *l = ctx;
    if (l->casts_only && strcmp(rule, "heft/cast") != 0 && severity != HEFT_FAULT)
        return;
    /* Always print a note about tied tensors: nothing is lost, but the target grows. */
    if (severity == HEFT_NOTE && !l->verbose && strcmp(rule, "heft/tied") != 0)
        return;
    l->groups.lists_all = l->verbose;
    message_groups_add(&l->groups, &(message){ .kind = MESSAGE_LOSS,
                                               .severity = severity,
                                               .file = l->path,
                                               .rule = rule,
                                               .text = text,
                                               .tensor = tensor,
                                               .offset = HEFT_NOWHERE });
}

void losses_print(losses *l)
{
    message_groups_print(&l->groups);
}
