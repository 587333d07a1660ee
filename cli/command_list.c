/* command_list.c - the list of commands, and other words for them. */
#include <heft/remote.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "words.h"

/* Meson makes chosen_commands.def of commands.def: X(NAME, MODULE) becomes LEFT_OUT(NAME, MODULE)
 * for the commands of modules that the build does not have. */
#define X(name, module) extern const command command_##name;
#define LEFT_OUT(name, module)
#include "chosen_commands.def"
#undef X

/* In the order of `heft --help`. */
const command *const commands[] = {
#define X(name, module) &command_##name,
#include "chosen_commands.def"
};
#undef X
#undef LEFT_OUT
const size_t command_count = sizeof commands / sizeof *commands;

static const struct {
    const char *command, *module;
} left_out[] = {
#define X(name, module)
#define LEFT_OUT(name, module) { #name, #module },
#include "chosen_commands.def"
    { NULL, NULL },
};

const char *command_group_title(command_group group)
{
    static const char *const titles[COMMAND_GROUPS] = { "Look", "Change", "Check", "Share" };
    return titles[group];
}

typedef struct other_word { /* a word that people type for a command */
    const char *word, *command;
} other_word;

/* These words run the command. */
static const other_word aliases[] = {
    { "list", "ls" },     { "tensors", "ls" },   { "compare", "diff" }, { "check", "verify" },
    { "digest", "hash" }, { "digests", "hash" }, { "join", "merge" },   { "combine", "merge" },
    { "stat", "stats" },  { "summary", "info" },
};
enum { ALIASES = sizeof aliases / sizeof *aliases };

/* For these words the command is suggested, because the arguments differ. */
static const other_word hints[] = {
    { "add", "append" },    { "cast", "convert" },    { "copy", "convert" }, { "cp", "convert" },
    { "dump", "cat" },      { "export", "convert" },  { "get", "cat" },      { "inspect", "info" },
    { "metadata", "info" }, { "print", "show" },      { "rename", "edit" },  { "set", "edit" },
    { "shard", "split" },   { "validate", "verify" }, { "view", "show" },
};
enum { HINTS = sizeof hints / sizeof *hints };

const command *command_find(const char *name)
{
    for (size_t i = 0; i < ALIASES; i++)
        if (!strcmp(aliases[i].word, name))
            name = aliases[i].command;
    for (size_t i = 0; i < command_count; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

int command_say_left_out(const char *what, const char *module)
{
    return say_status(HEFT_E_UNSUPPORTED, NULL,
                      "%s needs the module '%s', which this build of heft does not have; rebuild "
                      "heft with '%s' among -Dmodules",
                      what, module, module);
}

int command_say_unknown(const char *name)
{
    for (size_t i = 0; left_out[i].command; i++)
        if (!strcmp(left_out[i].command, name))
            return command_say_left_out("this command", left_out[i].module);
    char text[SUGGESTION_BYTES];
    suggestion s = { .word = str_of(name) };
    bool is_path = strchr(name, '.') || strchr(name, '/');
    if (is_path && (!access(name, F_OK) || strstr(name, "://")))
        return say_status(HEFT_E_ARGUMENT, NULL,
                          "'%s' is a file, and the first word is a command: `heft ls %s` lists its "
                          "tensors, `heft info %s` describes it",
                          name, name, name);
    for (size_t i = 0; i < command_count; i++)
        suggestion_try(&s, str_of(commands[i]->name));
    for (size_t i = 0; i < HINTS; i++)
        if (!strcmp(hints[i].word, name))
            return say_status(HEFT_E_ARGUMENT, NULL,
                              "unknown command '%s'; did you mean '%s'? (see heft --help)", name,
                              hints[i].command);
    return say_status(HEFT_E_ARGUMENT, NULL, "unknown command '%s'%s (see heft --help)", name,
                      suggestion_text(text, &s));
}
