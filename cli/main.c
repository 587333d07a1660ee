/* main.c - the heft command: find the command and run it, or suggest the closest name. */
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "options/command.h"
#include "process/interrupt.h"
#include "process/term.h"

static void print_group(outbuf *o, command_group group)
{
    const char *title = command_group_title(group);
    for (size_t i = 0; i < command_count; i++) {
        if (commands[i]->group != group)
            continue;
        if (title)
            out_format(o, "\n%s:\n", title);
        title = NULL;
        out_format(o, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
    }
}

static void print_usage(outbuf *o)
{
    out_text(o, "Usage: heft COMMAND [OPTION...] [ARGUMENT...]\n"
                "       heft --version | --help | help COMMAND\n"
                "       heft --no-pager COMMAND ...\n\n"
                "Reads, writes, verifies, compares and converts model weights: safetensors, GGUF,\n"
                "PyTorch, NumPy, ONNX and other formats, which `heft formats` lists.\n");
    for (int g = 0; g < COMMAND_GROUPS; g++)
        print_group(o, (command_group)g);
    out_text(o, "\n`heft COMMAND --help` describes a command and its options.\n"
                "\nExample:\n  heft convert model.safetensors model.gguf\n");
}

static void print_version(outbuf *o)
{
    uint32_t v = heft_version();
    out_format(o, "heft %u.%u.%u\n", v >> 16, v >> 8 & 0xFF, v & 0xFF);
}

static int print(void (*print_text)(outbuf *o), int fd, int code)
{
    outbuf o;
    out_open(&o, fd);
    print_text(&o);
    return out_end(&o, code);
}

static int help_on(const char *name)
{
    char word[] = "--help", first[] = "";
    const command *c = command_find(name);
    return c ? command_run(c, true, 2, (char *[]){ first, word, NULL }) : command_say_unknown(name);
}

/* Handle options and words that are not a command of the table. */
static int run_global_option(int argc, char **argv)
{
    const char *name = argv[1];
    if (!strcmp(name, "--version") || !strcmp(name, "-V"))
        return print(print_version, STDOUT_FILENO, CODE_DONE);
    if (!strcmp(name, "help") && argc > 2)
        return help_on(argv[2]);
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help"))
        return print(print_usage, STDOUT_FILENO, CODE_DONE);
    if (*name == '-')
        return say_status(HEFT_E_ARGUMENT, NULL, "unknown option '%s' (see heft --help)", name);
    return command_say_unknown(name);
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
    bool no_pager = argc > 1 && !strcmp(argv[1], "--no-pager");
    argc -= no_pager;
    argv += no_pager;
    if (argc < 2) {
        say_status(HEFT_E_ARGUMENT, NULL, "no command given");
        return print(print_usage, STDERR_FILENO, CODE_USAGE);
    }
    const command *c = command_find(argv[1]);
    if (c && c->traits & COMMAND_WRITES)
        interrupt_announce();
    int code = c                                ? command_run(c, no_pager, argc - 1, argv + 1)
               : !strcmp(argv[1], "__complete") ? complete_run(argc, argv)
               : !strcmp(argv[1], "__describe") ? command_describe_all()
                                                : run_global_option(argc, argv);
    /* A signal that arrived too late to stop the work still kills the process, after the report. */
    if (code == CODE_DONE && interrupt_is_pending())
        say(MESSAGE_INFO, NULL, "interrupted after the output was complete");
    pager_end();
    interrupt_die();
    return code;
}
