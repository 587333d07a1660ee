/* command_list.c - the list of commands, and other words for them. */
#include <heft/remote.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "words.h"

/* In the order of `heft --help`. */
/* clang-format off */
#define EACH_COMMAND(C) \
    C(ls) C(info) C(cat) C(show) C(stats) C(ids) C(formats) C(report) \
    C(convert) C(split) C(merge) C(append) C(edit) \
    C(verify) C(doctor) C(diff) \
    C(hash) C(scan) C(sign) C(sbom)
/* clang-format on */

#define DECLARE(name) extern const command command_##name;
EACH_COMMAND(DECLARE)
#define ADDRESS(name) &command_##name,
const command *const commands[] = { EACH_COMMAND(ADDRESS) };
const size_t command_count = sizeof commands / sizeof *commands;

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

int command_say_unknown(const char *name)
{
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
