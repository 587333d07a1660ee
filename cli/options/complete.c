/* complete.c - `heft __complete`, for shells: print the words that may end a command line. */

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "options/command.h"
#include "text/words.h"

typedef struct completion {
    candidates c;
    char **words; /* after the command; the last word is completed */
    int count;
} completion;

/* ---- the words before the last ---- */

/* Facts from the words before the last. */
typedef struct words_before {
    const opt *pending; /* the option that takes the next word, or NULL */
    size_t arguments;
} words_before;

/* Remember the options that change the candidates. */
static void note_value(candidates *c, const opt *option, const char *value)
{
    if (option->names == NAMES_FORMAT)
        c->target = value;
    if (option->is_setting && option->offset == offsetof(session, key))
        c->key = value;
}

static void read_long(candidates *c, words_before *b, const command *of, const char *word)
{
    const char *end = word + strcspn(word, "=");
    const opt *option = opt_find_long(of, word, end);
    if (!option || !opt_wants_value(option))
        return;
    if (*end)
        note_value(c, option, end + 1);
    else
        b->pending = option;
}

/* Read letters, "-lb": the value of a letter is the rest of the word, or the next word. */
static void read_letters(candidates *c, words_before *b, const command *of, const char *word)
{
    for (const char *p = word + 1; *p; p++) {
        const opt *option = opt_find_letter(of, *p);
        if (!option || !opt_wants_value(option))
            continue;
        if (p[1])
            note_value(c, option, p + 1);
        else
            b->pending = option;
        return;
    }
}

static words_before read_words(completion *m, const command *of)
{
    words_before b = { NULL, 0 };
    candidates *c = &m->c;
    for (int i = 0; i < m->count - 1; i++) {
        const char *word = m->words[i];
        if (b.pending) {
            note_value(c, b.pending, word);
            b.pending = NULL;
        } else if (c->options_ended || *word != '-' || !word[1]) {
            if (!b.arguments++)
                c->file = word;
        } else if (!strcmp(word, "--"))
            c->options_ended = true;
        else if (word[1] == '-')
            read_long(c, &b, of, word);
        else
            read_letters(c, &b, of, word);
    }
    return b;
}

/* ---- the last word ---- */

static void add_options(candidates *c, const command *of)
{
    const opt *p;
    char name[64] = "--";
    candidates_begin(c, "words");
    for (size_t i = 0; (p = opt_at(of, i)) != NULL; i++) {
        strncpy(name + 2, p->name, sizeof name - 3);
        candidates_add(c, str_of(name), p->help);
    }
}

/* Complete "--option=VALUE". */
static void add_values(candidates *c, const command *of, const char *word)
{
    const char *value = strchr(word, '=') + 1;
    const opt *option = opt_find_long(of, word, value - 1);
    c->before = (heft_str){ word, (size_t)(value - word) };
    c->typed = str_of(value);
    if (option && option->kind != OPT_FLAG)
        candidates_of_option(c, option);
    else
        candidates_begin(c, "words");
}

static void complete_word(completion *m, const command *of)
{
    candidates *c = &m->c;
    words_before b = read_words(m, of);
    const char *word = m->words[m->count - 1];
    if (b.pending)
        candidates_of_option(c, b.pending);
    else if (*word == '-' && !c->options_ended && strchr(word, '=') && word[1] == '-')
        add_values(c, of, word);
    else if (*word == '-' && !c->options_ended)
        add_options(c, of);
    else
        candidates_of_argument(c, of->args, b.arguments);
}

/* ---- commands ---- */

static void add_commands(candidates *c)
{
    static const struct {
        const char *word, *help;
    } others[] = {
        { "help", "describe a command" },
        { "--help", "list the commands" },
        { "--version", "print the version" },
        { "--no-pager", "show the output without a pager" },
    };
    candidates_begin(c, "words");
    for (size_t i = 0; i < command_count; i++)
        candidates_add(c, str_of(commands[i]->name), commands[i]->summary);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (*others[i].word != '-' || (c->typed.len && *c->typed.ptr == '-'))
            candidates_add(c, str_of(others[i].word), others[i].help);
}

static void complete_words(completion *m)
{
    if (m->count > 1 && (!strcmp(m->words[0], "--no-pager") || !strcmp(m->words[0], "help"))) {
        m->words++;
        m->count--;
    }
    const command *found = m->count > 1 ? command_find(m->words[0]) : NULL;
    if (m->count == 1)
        add_commands(&m->c);
    if (!found)
        return;
    m->words++;
    m->count--;
    complete_word(m, found);
}

/* ---- running ---- */

static bool read_shell(shell *out, const char *name)
{
    static const char *const names[] = { "bash", "zsh", "fish" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) {
            *out = (shell)i;
            return true;
        }
    return false;
}

/* Remove the quotation of all words, and find how much of the last word bash keeps. */
static void unquote_words(completion *m, size_t kept)
{
    candidates *c = &m->c;
    char *last = m->words[m->count - 1], *start = strdup(last);
    if (start && strlen(start) >= kept) {
        start[kept] = 0;
        shell_unquote(start);
        c->kept = strlen(start);
    }
    free(start);
    for (int i = 0; i < m->count - 1 && c->shell != SHELL_FISH; i++)
        shell_unquote(m->words[i]);
    c->quote = shell_unquote(last);
    c->typed = str_of(last);
}

static void give_up(int signal)
{
    (void)signal;
    _exit(CODE_DONE);
}

/* A file may be slow to open, and nobody wants to read errors while typing. */
static void stay_quiet(void)
{
    enum { SECONDS = 5 };
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, STDERR_FILENO);
    signal(SIGALRM, give_up);
    alarm(SECONDS);
}

int complete_run(int argc, char **argv)
{
    outbuf o;
    completion m = { .words = NULL };
    if (argc <= COMPLETE_FIRST_WORD || !read_shell(&m.c.shell, argv[COMPLETE_SHELL]))
        return say_status(HEFT_E_ARGUMENT, NULL,
                          "__complete is for shells: heft __complete SHELL KEPT WORD...");
    stay_quiet();
    out_open(&o, STDOUT_FILENO);
    m.c.o = &o;
    m.words = argv + COMPLETE_FIRST_WORD;
    m.count = argc - COMPLETE_FIRST_WORD;
    unquote_words(&m, strtoul(argv[COMPLETE_KEPT], NULL, 10));
    complete_words(&m);
    return out_end(&o, CODE_DONE);
}
