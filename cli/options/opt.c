#include "options/opt.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options/command.h"
#include "process/columns.h"
#include "text/words.h"

enum { FIRST_LONG = 256, OPTIONS_MAX = 80, HELP_COLUMN = 26, HELP_WIDTH = 80 };

static const opt common[COMMON] = {
    [COLOR] = { "color", 0, OPT_CHOICE, SETTING_WORD(colour, "auto always never"), "WHEN",
                "colour the output: auto, always or never" },
    [MESSAGES] = { "messages", 0, OPT_CHOICE, SETTING_WORD(messages, "text json"), "FORMAT",
                   "print messages on stderr as text or json" },
    [KEY] = { "key", 0, OPT_TEXT, SETTING(key), "KEY",
              "open only this part of a nested checkpoint, e.g. state_dict" },
    [VIEW] = { "view", 0, OPT_LIST, SETTING_NAME(views, NAMES_VIEW), "NAME=TYPE",
               "type of an array stored without one; NAME may be a pattern" },
    [ACCESS] = { "access", 0, OPT_CHOICE, SETTING_WORD(access, "auto map read direct"), "WAY",
                 "how to read files: auto, map, read, or direct past the page cache" },
    [MAX_TENSORS] = { "max-tensors", 0, OPT_COUNT, SETTING_COUNT(limits.tensors, 1, UINT32_MAX),
                      "N", "maximum number of tensors in a file (16777216)" },
    [MAX_BYTES] = { "max-bytes", 0, OPT_SIZE, SETTING(limits.read_bytes), "N",
                    "maximum number of bytes to read and decode (unlimited)" },
    [THREADS] = { "threads", 'j', OPT_COUNT, SETTING_COUNT(threads, 0, 1024), "N",
                  "number of threads; 0: one per processor (default)" },
    [QUIET] = { "quiet", 'q', OPT_FLAG, SETTING(quiet), NULL, "print neither notes nor warnings" },
    [NO_VERIFY] = { "no-verify", 0, OPT_FLAG, SETTING(no_verify), NULL,
                    "read in spite of wrong checksums" },
    [OFFLINE] = { "offline", 0, OPT_FLAG, SETTING(offline), NULL,
                  "refuse files on servers, as HF_HUB_OFFLINE=1 does" },
    [FOLLOW_LINKS] = { "follow-links", 0, OPT_FLAG, SETTING(follow_links), NULL,
                       "follow symbolic links that leave the model's folder" },
    [NO_SANDBOX] = { "no-sandbox", 0, OPT_FLAG, SETTING(no_sandbox), NULL,
                     "restrict neither files nor system calls" },
    [HELP] = { "help", 'h', OPT_FLAG, SETTING(help), NULL, "show this help" },
};

/* Return row i of the tables: the command's own options come first. */
static const opt *find_row(const command *c, size_t i, bool with_titles)
{
    static const opt own = { .name = OPT_TITLE, .help = "Options" };
    static const opt title = { .name = OPT_TITLE, .help = "Options of every command" };
    if (with_titles && c->options && *c->options->name && !i--)
        return &own;
    for (const opt *o = c->options; o && o->name; o++)
        if ((with_titles || *o->name) && !i--)
            return o;
    for (const shared_opt *s = c->shared; s && s->opt.name; s++)
        if (s->commands & c->sharer && (with_titles || *s->opt.name) && !i--)
            return &s->opt;
    if (with_titles && !i--)
        return &title;
    for (size_t k = 0; k < COMMON; k++)
        if (!(c->without >> k & 1) && !i--)
            return &common[k];
    return NULL;
}

const opt *opt_at(const command *c, size_t i)
{
    return find_row(c, i, false);
}

const opt *opt_row_at(const command *c, size_t i)
{
    return find_row(c, i, true);
}

void *opt_target(const session *s, const opt *o)
{
    char *from = o->is_setting ? (char *)(uintptr_t)s : s->request;
    return from + o->offset;
}

/* ---- --help ---- */

static void print_option(outbuf *o, const opt *p)
{
    char line[3 * HELP_COLUMN]; /* longer than any option with its value */
    snprintf(line, sizeof line, p->letter ? "  -%c, --%s%s%s" : "  %c   --%s%s%s",
             p->letter ? p->letter : ' ', p->name, p->value && p->kind != OPT_MAYBE ? " " : "",
             p->value ? p->value : "");
    out_format(o, "%-*s", HELP_COLUMN, line);
    if (strlen(line) >= HELP_COLUMN)
        out_format(o, "\n%*s", HELP_COLUMN, "");
    out_wrapped(o, p->help, HELP_COLUMN, HELP_COLUMN, HELP_WIDTH);
}

static int print_help(const command *c)
{
    outbuf o;
    const opt *p;
    out_open(&o, STDOUT_FILENO);
    out_format(&o, "Usage: heft %s [OPTION...]%s%s\n\n", c->name, *c->args ? " " : "", c->args);
    out_wrapped(&o, c->description, 0, 0, HELP_WIDTH);
    for (size_t i = 0; (p = opt_row_at(c, i)) != NULL; i++) {
        if (!*p->name)
            out_format(&o, "\n%s:\n", p->help);
        else
            print_option(&o, p);
    }
    out_format(&o, "\nExample:\n  %s\n", c->example);
    return out_end(&o, CODE_DONE);
}

/* ---- values ---- */

static bool set_number(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        return false;
    *out = v;
    return true;
}

static bool set_count(const char *text, const opt *o, uint32_t *out)
{
    uint64_t n;
    if (!set_number(text, &n) || n < o->least || n > o->most)
        return false;
    *out = (uint32_t)n;
    return true;
}

/* Return the length of the first word, and in *next the text after it and a space. */
static size_t first_word(const char *words, const char **next)
{
    size_t len = strcspn(words, " ");
    *next = words + len + (words[len] == ' ');
    return len;
}

/* Find the text among the words. */
static bool set_choice(const char *text, const char *words, unsigned *out)
{
    unsigned n = 0;
    for (const char *next; *words; words = next, n++) {
        size_t len = first_word(words, &next);
        if (!strncmp(words, text, len) && !text[len]) {
            *out = n;
            return true;
        }
    }
    return false;
}

/* Multiply; return false on overflow. */
static bool scale(uint64_t *v, uint64_t by)
{
    bool fits = *v <= UINT64_MAX / by;
    *v = fits ? *v * by : 0;
    return fits;
}

/* Parse the unit of a size: K, M, G and T are powers of 1000; Ki, Mi, Gi and Ti powers of 1024; an
 * optional B follows. Letters may be small. Return 0 for anything else. */
static uint64_t unit_of(const char *text)
{
    static const char units[] = "kmgt";
    const char *unit = *text ? strchr(units, *text | 0x20) : NULL;
    uint64_t step = unit && (text[1] | 0x20) == 'i' ? 1024 : 1000, bytes = 1;
    text += unit ? (step == 1024 ? 2 : 1) : 0;
    text += (*text | 0x20) == 'b';
    for (ptrdiff_t n = unit ? unit - units + 1 : 0; n; n--)
        bytes *= step;
    return *text ? 0 : bytes;
}

/* Parse a size in bytes, with a fraction if a unit follows: 1.5GB. Bytes are rounded down. */
static bool set_size(const char *text, uint64_t *out)
{
    enum { LAST = 100000 }; /* six digits of a fraction: no product overflows */
    char *end;
    errno = 0;
    uint64_t v = strtoull(text, &end, 10), fraction = 0, divisor = 1;
    if (*text < '0' || *text > '9' || errno)
        return false;
    bool has_fraction = *end == '.' && end[1] >= '0' && end[1] <= '9';
    for (end += has_fraction; has_fraction && *end >= '0' && *end <= '9'; end++, divisor *= 10) {
        if (divisor > LAST)
            return false;
        fraction = 10 * fraction + (uint64_t)(*end - '0');
    }
    uint64_t unit = unit_of(end);
    if (!unit || (has_fraction && unit == 1) || !scale(&v, unit))
        return false;
    uint64_t rest = fraction * unit / divisor;
    *out = v + rest;
    return *out && v <= UINT64_MAX - rest;
}

static bool set_real(const char *text, double *out)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= 0))
        return false;
    *out = v;
    return true;
}

/* Append the path and the number of MODEL=NUMBER, whose text is cut. A path may have a = that no
 * number follows. */
static void add_model(opt_list *list, char *text)
{
    char *equals = strrchr(text, '='), *end = NULL;
    if (equals && equals[1])
        (void)strtod(equals + 1, &end);
    bool has_number = end && !*end && end != equals + 1;
    list->item[list->count++] = text;
    list->item[list->count++] = has_number ? equals + 1 : "";
    if (has_number)
        *equals = 0;
}

/* Store the value. Return false if it does not suit the option. */
static bool set_value(const session *s, const opt *p, const char *text)
{
    void *to = opt_target(s, p);
    opt_list *list = to;
    unsigned choice = 0;
    if (p->words && !set_choice(text, p->words, &choice))
        return false;
    switch (p->kind) {
    case OPT_FLAG:
        *(bool *)to = true;
        return true;
    case OPT_MAYBE:
        *(const char **)to = text ? text : "";
        return true;
    case OPT_TEXT:
    case OPT_FILE:
    case OPT_MODEL:
    case OPT_OUTPUT:
    case OPT_RECORDS:
    case OPT_PROFILE:
        *(const char **)to = text;
        return true;
    case OPT_SECRET:
        ((secret *)to)->path = text;
        return true;
    case OPT_MODELS:
        add_model(list, (char *)(uintptr_t)text);
        return true;
    case OPT_LIST:
    case OPT_KEY_FILES:
    case OPT_TENSOR_FILES:
        list->item[list->count++] = text;
        return true;
    case OPT_CHOICE:
        *(unsigned *)to = choice;
        return true;
    case OPT_COUNT:
        return set_count(text, p, to);
    case OPT_NUMBER:
        return set_number(text, to);
    case OPT_SIZE:
        return set_size(text, to);
    case OPT_REAL:
        return set_real(text, to);
    }
    return false;
}

/* ---- parsing ---- */

static void fill_getopt(struct option *longs, char *shorts, const command *c)
{
    size_t n = 0, s = 0;
    const opt *p;
    shorts[s++] = ':';
    for (; n < OPTIONS_MAX - 1 && (p = opt_at(c, n)) != NULL; n++) {
        int has_value = p->kind == OPT_MAYBE ? optional_argument
                        : opt_wants_value(p) ? required_argument
                                             : no_argument;
        longs[n] = (struct option){ p->name, has_value, NULL, FIRST_LONG + (int)n };
        if (p->letter)
            shorts[s++] = p->letter;
        if (p->letter && opt_wants_value(p))
            shorts[s++] = ':';
    }
    shorts[s] = 0;
    longs[n] = (struct option){ NULL, 0, NULL, 0 };
}

const opt *opt_find_letter(const command *c, int letter)
{
    const opt *p;
    for (size_t i = 0; (p = opt_at(c, i)) != NULL; i++)
        if (p->letter == letter)
            return p;
    return NULL;
}

bool opt_sets(const command *c, size_t member)
{
    const opt *p;
    for (size_t i = 0; (p = opt_at(c, i)) != NULL; i++)
        if (p->is_setting && p->offset == member)
            return true;
    return false;
}

const opt *opt_find_long(const command *c, const char *word, const char *end)
{
    const opt *p, *found = NULL;
    size_t len = (size_t)(end - word) - 2, matches = 0;
    for (size_t i = 0; (p = opt_at(c, i)) != NULL; i++) {
        if (strncmp(p->name, word + 2, len) != 0)
            continue;
        if (!p->name[len])
            return p;
        found = p;
        matches++;
    }
    return matches == 1 ? found : NULL;
}

static const opt *option_for(const command *c, int found)
{
    return found >= FIRST_LONG ? opt_at(c, (size_t)(found - FIRST_LONG))
                               : opt_find_letter(c, found);
}

static const char *suggest_option(char out[SUGGESTION_BYTES], const command *c, const char *word)
{
    suggestion s = { .word = { word + 2, strcspn(word + 2, "=") }, .prefix = "--" };
    const opt *p;
    for (size_t i = 0; (p = opt_at(c, i)) != NULL; i++)
        suggestion_try(&s, str_of(p->name));
    return suggestion_text(out, &s);
}

/* Report an option that getopt refused, spelled as the user typed it. */
static int say_bad_option(const command *c, const char *word)
{
    const opt *known = optopt ? option_for(c, optopt) : NULL;
    if (known) /* the value is missing, or the option takes none */
        return say_usage(c->name, "option '--%s' %s", known->name,
                         opt_wants_value(known) ? "needs a value" : "takes no value");
    if (optopt)
        return say_usage(c->name, "unknown option '-%c'", optopt);
    char text[SUGGESTION_BYTES] = "";
    return say_usage(c->name, "unknown or ambiguous option '%s'%s", word,
                     strncmp(word, "--", 2) != 0 ? text : suggest_option(text, c, word));
}

/* "auto, always or never" */
static void out_words(outbuf *o, const char *words)
{
    for (const char *next; *words; words = next) {
        size_t len = first_word(words, &next), last;
        out_bytes(o, words, len);
        last = *next ? strcspn(next, " ") : 0;
        out_text(o, !*next ? "" : next[last] ? ", " : " or ");
    }
}

static int say_bad_value(const command *c, const opt *p, const char *text)
{
    outbuf o;
    out_open(&o, -1);
    if (p->words)
        out_words(&o, p->words);
    else if (p->least)
        out_format(&o, "a number from %u to %u", (unsigned)p->least, (unsigned)p->most);
    else
        out_format(&o, "a number up to %u", (unsigned)p->most);
    int code = p->words || p->most
                   ? say_usage(c->name, "--%s must be %s, not '%s'", p->name, out_cstr(&o), text)
                   : say_usage(c->name, "invalid value '%s' for --%s", text, p->name);
    out_free(&o);
    return code;
}

/* Apply one option. Return false, with the exit code in *code, if the command must end. */
static bool apply_option(const session *s, int *code, int found, char **argv)
{
    const command *c = s->command;
    const opt *p = found == '?' || found == ':' ? NULL : option_for(c, found);
    if (!p)
        *code = say_bad_option(c, argv[optind - 1]);
    else if (!set_value(s, p, optarg))
        *code = say_bad_value(c, p, optarg);
    else if (s->help)
        *code = print_help(c);
    else
        return true;
    return false;
}

static bool is_list(const opt *o)
{
    return o->kind == OPT_LIST || o->kind == OPT_KEY_FILES || o->kind == OPT_MODELS ||
           o->kind == OPT_TENSOR_FILES;
}

/* Allocate the lists, each with capacity for two items for every word of the command line. */
static bool make_lists(const session *s, int argc)
{
    const opt *o;
    bool ok = true;
    for (size_t i = 0; ok && (o = opt_at(s->command, i)) != NULL; i++)
        if (is_list(o)) {
            opt_list *l = opt_target(s, o);
            *l = (opt_list){ calloc(2 * (size_t)argc, sizeof *l->item), 0 };
            ok = l->item;
        }
    return ok;
}

/* Count the arguments that the usage requires, "FILE [GLOB...]", and those that it allows. */
static void count_usage(const char *usage, int *least, int *most)
{
    *least = *most = 0;
    for (const char *next; *usage; usage = next) {
        size_t len = first_word(usage, &next);
        bool is_optional = *usage == '[', repeats = usage[len - 1 - is_optional] == '.';
        *least += !is_optional;
        *most = repeats || *most == INT_MAX ? INT_MAX : *most + 1;
    }
}

static bool check_count(const session *s, int *code)
{
    const command *c = s->command;
    int least, most;
    count_usage(c->args, &least, &most);
    if (s->args.count < least)
        *code = say_usage(c->name, "expected %s", c->args);
    else if (s->args.count > most)
        *code = say_usage(c->name, "unexpected argument '%s'", s->args.item[most]);
    else
        return true;
    return false;
}

bool opt_parse(session *s, int *code, int argc, char **argv)
{
    struct option longs[OPTIONS_MAX];
    char shorts[2 * OPTIONS_MAX + 2];
    assert(!opt_at(s->command, OPTIONS_MAX - 1));
    fill_getopt(longs, shorts, s->command);
    opterr = 0;
    optind = 1;
    if (!make_lists(s, argc)) {
        *code = say_status(HEFT_E_NOMEM, NULL, "no memory for the options of %s", s->command->name);
        return false;
    }
    for (int found; (found = getopt_long(argc, argv, shorts, longs, NULL)) != -1;)
        if (!apply_option(s, code, found, argv))
            return false;
    s->args = (opt_args){ argv + optind, argc - optind };
    return check_count(s, code);
}

void opt_release(const session *s)
{
    const opt *o;
    for (size_t i = 0; (o = opt_at(s->command, i)) != NULL; i++)
        if (is_list(o)) {
            opt_list *l = opt_target(s, o);
            free(l->item);
            *l = (opt_list){ NULL, 0 };
        }
}
