#include "loss_report.h"

#include <string.h>

#include "escape.h"

void say_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
              const char *text)
{
    static const char *const names[] = { "note", "warning", "error" };
    const losses *l = ctx;
    outbuf name;
    /* Always print a note about tied tensors: nothing is lost, but the target grows. */
    if (severity == HEFT_NOTE && !l->verbose && strcmp(rule, "heft/tied") != 0)
        return;
    out_open(&name, -1);
    out_escaped(&name, tensor);
    if (tensor.ptr)
        say(l->path, "%s: %s (tensor \"%s\")", names[severity], text, out_cstr(&name));
    else
        say(l->path, "%s: %s", names[severity], text);
    out_free(&name);
}
