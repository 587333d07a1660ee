/* run_command.c - runs a command: parses its words, finds its operands, reads keys, starts the
 * pager and enters the sandbox, in this order: each step needs what the next one takes away. */
#include <stdlib.h>

#include "command.h"
#include "operands.h"
#include "pager.h"
#include "sandbox.h"
#include "secret.h"

/* Return an exit code. */
static int begin_session(const invocation *v)
{
    static const char verbose[] = "--verbose";
    const command *c = v->command;
    int code = operands_resolve(v);
    if (!code)
        code = secrets_read(v);
    if (code)
        return code;
    model_set_given(v->args.item, v->args.count);
    message_set_quiet(model_settings.quiet);
    message_set_lists_all(opt_find_long(c, verbose, verbose + sizeof verbose - 1));
    if (c->traits & COMMAND_PAGED)
        pager_start();
    sandbox_enter(v);
    return CODE_DONE;
}

int command_run(const command *c, int argc, char **argv)
{
    invocation v = { .command = c, .request = calloc(1, c->request_bytes) };
    int code;
    if (!v.request)
        return say_status(HEFT_E_NOMEM, NULL, "no memory for the options of %s", c->name);
    if (c->begin)
        c->begin(v.request);
    if (opt_parse(&v, &code, argc, argv)) {
        code = begin_session(&v);
        if (!code)
            code = c->run(v.request, &v.args);
    }
    opt_release(&v);
    free(v.request);
    return code;
}
