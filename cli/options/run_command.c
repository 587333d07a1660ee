/* run_command.c - runs a command: parses its words, finds its operands, reads keys, starts the
 * pager and enters the sandbox, in this order: each step needs what the next one takes away. */
#include <stdlib.h>
#include <string.h>

#include "models/array_types.h"
#include "options/command.h"
#include "options/operands.h"
#include "options/sandbox.h"
#include "options/secret.h"
#include "process/pager.h"

/* ---- the session ---- */

void session_begin(session *s, const command *c)
{
    *s = (session){ .command = c,
                    .name = c ? c->name : NULL,
                    .checks_parts = c && c->traits & COMMAND_CHECKS_PARTS,
                    .reports_losses = c && c->traits & COMMAND_REPORTS_LOSSES,
                    .limits = HEFT_LIMITS_INIT };
    s->limits.read_counter = &s->bytes_read;
}

int session_complete(session *s)
{
    enum { INDEX_BYTES = 256 }; /* per tensor */
    heft_limits *limits = &s->limits;
    if (s->key && !*s->key)
        return say_usage(s->command->name, "--key is empty");
    if (limits->tensors > SESSION_TENSORS) /* fewer tensors do not shrink the index */
        limits->memory = limits->index_bytes = (uint64_t)limits->tensors * INDEX_BYTES;
    s->executor = heft_executor_threads(s->threads);
    heft_host_copy(&s->host, NULL, sizeof s->host);
    s->host.executor = &s->executor;
    return array_types_read(s);
}

void session_end(session *s)
{
    free((void *)(uintptr_t)s->given.files);
    array_types_free(s->types);
    for (kept_path *p = s->paths, *next; p; p = next) {
        next = p->next;
        free(p);
    }
}

/* ---- the command ---- */

static void set_styles(const session *s)
{
    bool can_list_all = opt_sets(s->command, offsetof(session, verbose));
    message_set_style(&(message_style){ s->messages, s->quiet, can_list_all });
    term_set_colour((term_when)s->colour);
}

static void set_given(session *s)
{
    int count = s->args.count > 1 ? s->args.count : 0;
    heft_folder_file *files = count ? calloc((size_t)count, sizeof *files) : NULL;
    for (int i = 0; files && i < count; i++) {
        const char *path = s->args.item[i], *slash = strrchr(path, '/');
        files[i] = (heft_folder_file){ slash ? slash + 1 : path, HEFT_FOLDER_GIVEN };
    }
    s->given = (heft_folder){ files, files ? (uint32_t)count : 0, NULL };
}

/* Take what the sandbox will refuse, and enter it. Return an exit code. */
static int prepare(session *s)
{
    set_styles(s);
    int code = session_complete(s);
    if (!code)
        code = operands_resolve(s);
    if (!code)
        code = secrets_read(s);
    if (code)
        return code;
    set_given(s);
    if (s->command->traits & COMMAND_PAGED && !s->no_pager)
        pager_start();
    sandbox_enter(s);
    return CODE_DONE;
}

int command_run(const command *c, bool no_pager, int argc, char **argv)
{
    session s;
    int code;
    session_begin(&s, c);
    s.no_pager = no_pager;
    s.request = calloc(1, c->request_bytes);
    if (!s.request)
        return say_status(HEFT_E_NOMEM, NULL, "no memory for the options of %s", c->name);
    if (c->begin)
        c->begin(&s, s.request);
    if (opt_parse(&s, &code, argc, argv)) {
        code = prepare(&s);
        if (!code)
            code = c->run(&s, s.request);
    }
    opt_release(&s);
    session_end(&s);
    free(s.request);
    return code;
}
