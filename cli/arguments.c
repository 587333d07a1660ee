#include "arguments.h"

#include <heft/remote.h>
#include <string.h>

#include "terminal.h"

static const argument_roles roles[] = {
    { "append", 0, -1, 0, FILE_OUTPUT },   { "cat", 0, 0, 0, NO_OUTPUT },
    { "convert", 0, 0, 1, STDOUT_OUTPUT }, { "diff", 0, 1, 0, NO_OUTPUT },
    { "doctor", 0, 0, 0, NO_OUTPUT },      { "edit", 0, 0, 0, FILE_OUTPUT },
    { "hash", 0, -1, 0, NO_OUTPUT },       { "ids", 0, 0, 0, NO_OUTPUT },
    { "info", 0, -1, 0, NO_OUTPUT },       { "ls", 0, 0, 0, NO_OUTPUT },
    { "merge", 0, -2, -1, FILE_OUTPUT },   { "report", 0, -1, 0, NO_OUTPUT },
    { "sbom", 0, 0, 0, NO_OUTPUT },        { "scan", 0, -1, 0, NO_OUTPUT },
    { "show", 0, 0, 0, NO_OUTPUT },        { "sign", 0, 0, 0, FILE_OUTPUT },
    { "split", 0, 0, 1, FOLDER_OUTPUT },   { "stats", 0, 0, 0, NO_OUTPUT },
    { "verify", 0, -1, 0, NO_OUTPUT },
};

const argument_roles *arguments_of(const char *command)
{
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(command, roles[i].command))
            return &roles[i];
    return NULL;
}

static void use_slashes_of_options(const opt_usage *u)
{
    for (size_t i = 0; i < u->count; i++) {
        opt_kind kind = u->options[i].kind;
        bool is_path = kind == OPT_FILE || kind == OPT_MODEL || kind == OPT_OUTPUT;
        char *const *path = is_path ? u->options[i].target : NULL;
        if (path && *path)
            terminal_use_slashes(*path);
    }
}

/* Return true if the argument is an input or the output. */
static bool is_path(const argument_roles *r, int i, const opt_args *args)
{
    bool is_output = r->kind != NO_OUTPUT && i == argument_index(r->output, args);
    return is_output || (i >= r->first_input && i <= argument_index(r->last_input, args));
}

const char *arguments_find_url(const opt_usage *u, const opt_args *args)
{
    const argument_roles *r = arguments_of(u->command);
    for (int i = 0; r && i < args->count; i++)
        if (is_path(r, i, args) && heft_is_url(args->item[i]))
            return args->item[i];
    for (size_t i = 0; i < u->count; i++) {
        const char *const *model = u->options[i].kind == OPT_MODEL ? u->options[i].target : NULL;
        if (model && heft_is_url(*model))
            return *model;
    }
    return NULL;
}

void arguments_use_slashes(const opt_usage *u, const opt_args *args)
{
    const argument_roles *r = arguments_of(u->command);
    use_slashes_of_options(u);
    for (int i = 0; r && i < args->count; i++)
        if (is_path(r, i, args))
            terminal_use_slashes(args->item[i]);
}
