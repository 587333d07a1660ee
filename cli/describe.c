/* describe.c - `heft __describe`: the commands and their options as JSON, for programs that make
 * documentation, bindings or completions. */
#include "describe.h"

#include <string.h>
#include <unistd.h>

#include "command.h"
#include "jsonout.h"

static const char *const kinds[] = {
    [OPT_FLAG] = "flag",           [OPT_TEXT] = "text",     [OPT_FILE] = "file",
    [OPT_MODEL] = "model",         [OPT_OUTPUT] = "output", [OPT_RECORDS] = "records",
    [OPT_PROFILE] = "profile",     [OPT_SECRET] = "secret", [OPT_LIST] = "list",
    [OPT_KEY_FILES] = "key_files", [OPT_NUMBER] = "number", [OPT_SIZE] = "size",
    [OPT_REAL] = "real",           [OPT_CHOICE] = "choice", [OPT_COUNT] = "number",
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

int describe_run(void)
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
