/* command_list.c - the list of commands, other words for them, and their description for programs
 * that make documentation, bindings or completions. */
#include <heft/remote.h>
#include <string.h>
#include <unistd.h>

#include "options/command.h"
#include "text/jsonout.h"
#include "text/words.h"

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
                      "%s needs the module '%s', which this build of Heft does not have; rebuild "
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

/* ---- for programs ---- */

static const char *const kinds[] = {
    [OPT_MAYBE] = "maybe",     [OPT_FLAG] = "flag",           [OPT_TEXT] = "text",
    [OPT_FILE] = "file",       [OPT_MODEL] = "model",         [OPT_OUTPUT] = "output",
    [OPT_RECORDS] = "records", [OPT_PROFILE] = "profile",     [OPT_SECRET] = "secret",
    [OPT_LIST] = "list",       [OPT_KEY_FILES] = "key_files", [OPT_TENSOR_FILES] = "list",
    [OPT_NUMBER] = "number",   [OPT_SIZE] = "size",           [OPT_REAL] = "real",
    [OPT_CHOICE] = "choice",   [OPT_COUNT] = "number",        [OPT_MODELS] = "models",
};

static void put_text(json *j, const char *key, const char *text)
{
    if (text)
        json_member_str(j, key, str_of(text));
    else
        json_member_null(j, key);
}

/* The only values of the option; an empty list: any. */
static void put_words(json *j, const char *words)
{
    json_member_begin(j, "words", '[');
    for (size_t len; words && *words; words += len + (words[len] == ' ')) {
        len = strcspn(words, " ");
        json_str(j, (heft_str){ words, len });
    }
    json_end(j, ']');
}

static void put_option(json *j, const opt *o, const char *group)
{
    const char letter[] = { o->letter, '\0' };
    json_line(j);
    json_begin(j, '{');
    put_text(j, "name", o->name);
    put_text(j, "letter", o->letter ? letter : NULL);
    put_text(j, "kind", kinds[o->kind]);
    put_text(j, "value", o->value);
    put_words(j, o->words);
    put_text(j, "help", o->help);
    put_text(j, "group", group);
    json_end(j, '}');
}

static void put_command(json *j, const command *c)
{
    const opt *o;
    const char *group = NULL;
    json_line(j);
    json_begin(j, '{');
    put_text(j, "name", c->name);
    put_text(j, "arguments", c->args);
    put_text(j, "summary", c->summary);
    put_text(j, "description", c->description);
    put_text(j, "example", c->example);
    put_text(j, "group", command_group_title(c->group));
    json_member_begin(j, "options", '[');
    for (size_t i = 0; (o = opt_row_at(c, i)) != NULL; i++) {
        if (*o->name)
            put_option(j, o, group);
        else
            group = o->help;
    }
    json_end(j, ']');
    json_end(j, '}');
}

int command_describe_all(void)
{
    outbuf o;
    json j = { &o, false };
    out_open(&o, STDOUT_FILENO);
    json_begin(&j, '[');
    for (size_t i = 0; i < command_count; i++)
        put_command(&j, commands[i]);
    json_end(&j, ']');
    out_char(&o, '\n');
    return out_end(&o, CODE_DONE);
}
