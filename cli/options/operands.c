#include "options/operands.h"

#include <heft/remote.h>
#include <string.h>

#include "options/hub.h"
#include "process/stdin_file.h"
#include "process/terminal.h"

/* ---- the walk ---- */

typedef struct walk {
    int (*visit)(void *ctx, operand *o);
    void *ctx;
} walk;

static int index_of(int argument, const opt_args *args)
{
    return argument < 0 ? args->count + argument : argument;
}

static int visit_argument(const walk *w, char **item, operand o)
{
    o.path = *item;
    o.is_argument = true;
    int code = w->visit(w->ctx, &o);
    *item = (char *)(uintptr_t)o.path;
    return code;
}

static int visit_arguments(const walk *w, const session *s)
{
    const operand_roles *r = &s->command->operands;
    int first = r->first_input, last = index_of(r->last_input, &s->args), code = CODE_DONE;
    int output = r->kind ? index_of(r->output, &s->args) : -1;
    for (int i = first; i <= last && i < s->args.count && !code; i++)
        code = visit_argument(w, &s->args.item[i],
                              (operand){ .kind = OPT_MODEL, .is_changed = i == output });
    if (r->kind && !code)
        code = visit_argument(w, &s->args.item[output],
                              (operand){ .kind = OPT_OUTPUT,
                                         .output = r->kind,
                                         .is_changed = output >= first && output <= last });
    return code;
}

/* Visit the files of KEY=FILE. */
static int visit_key_files(const walk *w, const opt_list *list)
{
    int code = CODE_DONE;
    for (size_t i = 0; i < list->count && !code; i++) {
        const char *equals = strchr(list->item[i], '=');
        if (equals)
            code = w->visit(w->ctx, &(operand){ .path = equals + 1, .kind = OPT_KEY_FILES });
    }
    return code;
}

static bool is_path(opt_kind kind)
{
    return kind == OPT_FILE || kind == OPT_MODEL || kind == OPT_OUTPUT || kind == OPT_RECORDS ||
           kind == OPT_PROFILE;
}

static int visit_option(const walk *w, const session *s, const opt *option)
{
    if (option->kind == OPT_KEY_FILES)
        return visit_key_files(w, opt_target(s, option));
    const char **path = is_path(option->kind) ? opt_target(s, option) : NULL;
    operand o = { .path = path ? *path : NULL,
                  .kind = option->kind,
                  .output = option->kind == OPT_OUTPUT ? STDOUT_OUTPUT : NO_OUTPUT };
    if (!o.path)
        return CODE_DONE;
    int code = w->visit(w->ctx, &o);
    *path = o.path;
    return code;
}

int operands_visit(const session *s, int (*visit)(void *ctx, operand *o), void *ctx)
{
    walk w = { visit, ctx };
    const opt *o;
    int code = visit_arguments(&w, s);
    for (size_t i = 0; !code && (o = opt_at(s->command, i)) != NULL; i++)
        code = visit_option(&w, s, o);
    return code;
}

/* ---- what operands stand for ---- */

static int resolve(void *ctx, operand *o)
{
    session *s = ctx;
    bool is_model = o->kind == OPT_MODEL, names_file = o->kind == OPT_FILE;
    if (o->is_argument || is_model || names_file || o->kind == OPT_OUTPUT)
        terminal_use_slashes((char *)(uintptr_t)o->path);
    bool is_url = (is_model || o->is_argument) && heft_is_url(o->path);
    if (is_url && s->offline)
        return say_status(HEFT_E_IO, o->path,
                          "is on a server, and --offline forbids the use of the network");
    if (is_model && o->is_argument && !strcmp(o->path, "-"))
        return stdin_take(s, &o->path, o->is_changed);
    return is_model ? hub_take(s, &o->path, o->is_changed) : CODE_DONE;
}

int operands_resolve(session *s)
{
    return operands_visit(s, resolve, s);
}

static int find_server(void *ctx, operand *o)
{
    bool *found = ctx;
    *found = *found || ((o->kind == OPT_MODEL || o->is_argument) && heft_is_url(o->path));
    return CODE_DONE;
}

bool operands_use_server(const session *s)
{
    bool found = false;
    operands_visit(s, find_server, &found);
    return found;
}
