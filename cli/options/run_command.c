/* run_command.c - runs a command: parses its words, finds its operands, reads keys, starts the
 * pager and enters the sandbox, in this order: each step needs what the next one takes away. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <heft/remote.h>

#include "models/model.h"
#include "options/command.h"
#include "options/opt.h"
#include "process/term.h"
#include "process/textfile.h"

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

char *opt_tensor_file(const char *text, const char **name)
{
    struct stat info;
    const char *colon = strrchr(text, ':');
    bool is_whole = !colon || !colon[1] || !stat(text, &info);
    *name = is_whole ? NULL : colon + 1;
    return is_whole ? strdup(text) : strndup(text, (size_t)(colon - text));
}

/* Visit the models of NAME=FILE[:NAME]. */
static int visit_tensor_files(const walk *w, const opt_list *list)
{
    int code = CODE_DONE;
    const char *name;
    for (size_t i = 0; i < list->count && !code; i++) {
        const char *equals = strchr(list->item[i], '=');
        char *path = equals ? opt_tensor_file(equals + 1, &name) : NULL;
        if (path)
            code = w->visit(w->ctx, &(operand){ .path = path, .kind = OPT_TENSOR_FILES });
        free(path);
    }
    return code;
}

/* Visit the models of MODEL=NUMBER. */
static int visit_models(const walk *w, const opt_list *list)
{
    int code = CODE_DONE;
    for (size_t i = 0; i < list->count && !code; i += 2) {
        operand o = { .path = list->item[i], .kind = OPT_MODEL };
        code = w->visit(w->ctx, &o);
        list->item[i] = o.path;
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
    if (option->kind == OPT_TENSOR_FILES)
        return visit_tensor_files(w, opt_target(s, option));
    if (option->kind == OPT_MODELS)
        return visit_models(w, opt_target(s, option));
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

/* Make the operands paths or addresses: separators are slashes, "-" is a file with the content of
 * standard input, "hub:NAME" a folder of the cache. With --offline, an address is refused. Return
 * an exit code. */
static int operands_resolve(session *s)
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
    if (s->command->prepare)
        code = s->command->prepare(s, s->request);
    if (code)
        return code;
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
