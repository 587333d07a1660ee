/* main.c - the heft command: find the command and run it, or suggest the closest name. */
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "complete.h"
#include "interrupt.h"
#include "pager.h"
#include "sandbox.h"
#include "terminal.h"
#include "words.h"

static const command commands[] = {
    { "ls", cmd_ls, "list the tensors of a file", false },
    { "info", cmd_info, "show format, version, counts, metadata and checksums", false },
    { "cat", cmd_cat, "write the decoded bytes of a tensor or of a part of the file", false },
    { "show", cmd_show, "print the values of a tensor, summarised", false },
    { "convert", cmd_convert, "write a model in another format", true },
    { "split", cmd_split, "write a model as several files", true },
    { "merge", cmd_merge, "write several files as one", true },
    { "verify", cmd_verify, "check structure, checksums, padding and reserved bits", false },
    { "sign", cmd_sign, "sign the files of a model with a private key", true },
    { "doctor", cmd_doctor, "say what is wrong with a file, and salvage intact tensors", true },
    { "diff", cmd_diff, "compare two files, across formats", false },
    { "hash", cmd_hash, "print content digests, which are the same in every format", false },
    { "ids", cmd_ids, "list parameter ids of gpt-rs and Burn", false },
    { "stats", cmd_stats, "compute minimum, maximum, mean and more of every tensor", false },
    { "scan", cmd_scan, "report what pickles would import, without loading them", false },
    { "sbom", cmd_sbom, "print a bill of materials (CycloneDX)", false },
    { "report", cmd_report, "write an HTML page about a file, with pictures", true },
    { "append", cmd_append, "add tensors from other files to a file", true },
    { "edit", cmd_edit, "change metadata, names and ids in the file itself", true },
    { "formats", cmd_formats, "list the formats that this build reads and writes", false },
};
enum { COMMANDS = sizeof commands / sizeof *commands };

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

static const command *find_command(const char *name)
{
    for (size_t i = 0; i < ALIASES; i++)
        if (!strcmp(aliases[i].word, name))
            name = aliases[i].command;
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

static int say_unknown(const char *name)
{
    char text[SUGGESTION_BYTES];
    suggestion s = { .word = str_of(name) };
    bool is_path = strchr(name, '.') || strchr(name, '/');
    if (is_path && (!access(name, F_OK) || strstr(name, "://")))
        return say_status(HEFT_E_ARGUMENT, NULL,
                          "'%s' is a file, and the first word is a command: `heft ls %s` lists its "
                          "tensors, `heft info %s` describes it",
                          name, name, name);
    for (size_t i = 0; i < COMMANDS; i++)
        suggestion_try(&s, str_of(commands[i].name));
    for (size_t i = 0; i < HINTS; i++)
        if (!strcmp(hints[i].word, name))
            return say_status(HEFT_E_ARGUMENT, NULL,
                              "unknown command '%s'; did you mean '%s'? (see heft --help)", name,
                              hints[i].command);
    return say_status(HEFT_E_ARGUMENT, NULL, "unknown command '%s'%s (see heft --help)", name,
                      suggestion_text(text, &s));
}

static void print_usage(outbuf *o)
{
    out_text(o, "Usage: heft COMMAND [OPTION...] [ARGUMENT...]\n"
                "       heft --version | --help | help COMMAND\n"
                "       heft --no-pager COMMAND ...\n\n"
                "Reads, writes, verifies, compares and converts model weights.\n\n"
                "Commands:\n");
    for (size_t i = 0; i < COMMANDS; i++)
        out_format(o, "  %-9s %s\n", commands[i].name, commands[i].help);
    out_text(o, "\n`heft COMMAND --help` describes a command and its options.\n"
                "\nExample:\n  heft convert model.zt model.safetensors\n");
}

static void print_version(outbuf *o)
{
    uint32_t v = heft_version();
    out_format(o, "heft %u.%u.%u\n", v >> 16, v >> 8 & 0xFF, v & 0xFF);
}

static int print(void (*print_text)(outbuf *o))
{
    outbuf o;
    out_open(&o, STDOUT_FILENO);
    print_text(&o);
    return out_end(&o, CODE_DONE);
}

static int help_on(const char *name)
{
    char word[] = "--help", first[16] = "";
    const command *c = find_command(name);
    if (!c)
        return say_unknown(name);
    strncpy(first, name, sizeof first - 1);
    return c->run(2, (char *[]){ first, word, NULL });
}

/* Handle options and words that are not a command of the table. */
static int run_global_option(int argc, char **argv)
{
    const char *name = argv[1];
    if (!strcmp(name, "--version") || !strcmp(name, "-V"))
        return print(print_version);
    if (!strcmp(name, "help") && argc > 2)
        return help_on(argv[2]);
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help"))
        return print(print_usage);
    if (*name == '-')
        return say_status(HEFT_E_ARGUMENT, NULL, "unknown option '%s' (see heft --help)", name);
    return say_unknown(name);
}

static int complete(int argc, char **argv)
{
    const command_list list = { commands, COMMANDS, find_command };
    return complete_run(argc, argv, &list);
}

int main(int argc, char **argv)
{
    argv = terminal_prepare(&argc, argv);
    sandbox_begin();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* writes fail with EFBIG instead */
    message_announce_bus_errors();
    setlocale(LC_CTYPE, "C.UTF-8");
    message_find_format(argc, argv);
    if (argc > 1 && !strcmp(argv[1], "--no-pager")) {
        pager_disable();
        argc--;
        argv++;
    }
    if (argc < 2)
        return say_status(HEFT_E_ARGUMENT, NULL, "no command given (see heft --help)");
    const command *c = find_command(argv[1]);
    if (c && c->writes)
        interrupt_announce();
    int code = c                                ? c->run(argc - 1, argv + 1)
               : !strcmp(argv[1], "__complete") ? complete(argc, argv)
                                                : run_global_option(argc, argv);
    /* A signal that arrived too late to stop the work still kills the process, after the report. */
    if (code == CODE_DONE && interrupt_is_pending())
        say(MESSAGE_INFO, NULL, "interrupted after the output was complete");
    pager_end();
    interrupt_die();
    return code;
}
