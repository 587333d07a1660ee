#include "opt.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arguments.h"
#include "array_types.h"
#include "cmd.h"
#include "hub.h"
#include "model.h"
#include "narrow.h"
#include "pager.h"
#include "sandbox.h"
#include "secret.h"
#include "stdin_file.h"
#include "words.h"

enum { FIRST_LONG = 256, OPTIONS_MAX = 64, HELP_COLUMN = 26, HELP_WIDTH = 80 };

/* Options of every command, listed after the command's own. */
enum {
    COLOR,
    MESSAGES,
    KEY,
    VIEW,
    ACCESS,
    MAX_TENSORS,
    MAX_BYTES,
    THREADS,
    QUIET,
    NO_VERIFY,
    OFFLINE,
    FOLLOW_LINKS,
    NO_SANDBOX,
    HELP,
    COMMON
};
static const opt common[COMMON] = {
    [COLOR] = { "color", 0, OPT_TEXT, NULL, "WHEN", "colour the output: auto, always or never" },
    [MESSAGES] = { "messages", 0, OPT_TEXT, NULL, "FORMAT",
                   "print messages on stderr as text or json" },
    [KEY] = { "key", 0, OPT_TEXT, NULL, "KEY",
              "open only this part of a nested checkpoint, e.g. state_dict" },
    [VIEW] = { "view", 0, OPT_LIST, NULL, "NAME=TYPE",
               "type of an array stored without one; NAME may be a pattern" },
    [ACCESS] = { "access", 0, OPT_TEXT, NULL, "WAY",
                 "how to read files: auto, map, read, or direct past the page cache" },
    [MAX_TENSORS] = { "max-tensors", 0, OPT_TEXT, NULL, "N",
                      "maximum number of tensors in a file (16777216)" },
    [MAX_BYTES] = { "max-bytes", 0, OPT_SIZE, &model_settings.limits.read_bytes, "N",
                    "maximum number of bytes to read and decode (unlimited)" },
    [THREADS] = { "threads", 'j', OPT_TEXT, NULL, "N",
                  "number of threads; 0: one per processor (default)" },
    [QUIET] = { "quiet", 'q', OPT_FLAG, &model_settings.quiet, NULL,
                "print neither notes nor warnings" },
    [NO_VERIFY] = { "no-verify", 0, OPT_FLAG, &model_settings.no_verify, NULL,
                    "read in spite of wrong checksums" },
    [OFFLINE] = { "offline", 0, OPT_FLAG, &model_settings.offline, NULL,
                  "refuse files on servers, as HF_HUB_OFFLINE=1 does" },
    [FOLLOW_LINKS] = { "follow-links", 0, OPT_FLAG, &model_settings.follow_links, NULL,
                       "follow symbolic links that leave the model's folder" },
    [NO_SANDBOX] = { "no-sandbox", 0, OPT_FLAG, &model_settings.no_sandbox, NULL,
                     "restrict neither files nor system calls" },
    [HELP] = { "help", 'h', OPT_FLAG, NULL, NULL, "show this help" },
};

/* Functions that store the values of common options, and the error for a refused value. */
static const struct {
    bool (*set)(const char *value);
    const char *message; /* format for the option's name and value */
} setters[COMMON] = {
    [COLOR] = { term_set_colour, "--%s must be auto, always or never, not '%s'" },
    [MESSAGES] = { message_set_format, "--%s must be text or json, not '%s'" },
    [KEY] = { model_set_key, "--%s is empty" },
    [VIEW] = { array_types_add, "--%s must be NAME=TYPE with a type that `heft formats --types` "
                                "lists, not '%s'" },
    [ACCESS] = { model_set_access, "--%s must be auto, map, read or direct, not '%s'" },
    [MAX_TENSORS] = { model_set_max_tensors,
                      "--%s must be a number from 1 to 4294967295, not '%s'" },
    [THREADS] = { model_set_threads, "--%s must be a number up to 1024, not '%s'" },
};

/* Options about models, which commands that look at the bytes of files do not have. */
enum {
    NOT_OF_RAW_FILES = 1 << KEY | 1 << VIEW | 1 << ACCESS | 1 << MAX_TENSORS | 1 << MAX_BYTES |
                       1 << QUIET | 1 << NO_VERIFY | 1 << OFFLINE | 1 << FOLLOW_LINKS
};

/* Common options that a command does not have. */
static const struct {
    const char *command;
    unsigned excluded;
} excluded_options[] = {
    { "doctor", NOT_OF_RAW_FILES },
    { "append", 1u << VIEW },
    { "edit", 1u << VIEW | 1u << NO_VERIFY },
    { "formats", 1u << VIEW | 1u << ACCESS | 1u << THREADS | 1u << QUIET | 1u << NO_VERIFY |
                     1u << OFFLINE | 1u << FOLLOW_LINKS },
    { "scan", NOT_OF_RAW_FILES },
    { "sign", NOT_OF_RAW_FILES },
    { "verify", 1u << KEY | 1u << NO_VERIFY },
};

const opt *opt_at(const opt_usage *u, size_t i)
{
    unsigned excluded = 0;
    if (i < u->count)
        return &u->options[i];
    i -= u->count;
    for (size_t k = 0; k < sizeof excluded_options / sizeof *excluded_options; k++)
        if (!strcmp(excluded_options[k].command, u->command))
            excluded = excluded_options[k].excluded;
    for (size_t k = 0; k < COMMON; k++)
        if (!(excluded >> k & 1) && !i--)
            return &common[k];
    return NULL;
}

/* ---- --help ---- */

static int print_help(const opt_usage *u)
{
    outbuf o;
    out_open(&o, STDOUT_FILENO);
    out_format(&o, "Usage: heft %s [OPTION...]%s%s\n\n", u->command, *u->args ? " " : "", u->args);
    out_wrapped(&o, u->description, 0, 0, HELP_WIDTH);
    out_text(&o, "\nOptions:\n");
    const opt *p;
    for (size_t i = 0; (p = opt_at(u, i)) != NULL; i++) {
        char line[3 * HELP_COLUMN]; /* longer than any option with its value */
        snprintf(line, sizeof line, p->letter ? "  -%c, --%s%s%s" : "  %c   --%s%s%s",
                 p->letter ? p->letter : ' ', p->name, p->value ? " " : "",
                 p->value ? p->value : "");
        out_format(&o, "%-*s", HELP_COLUMN, line);
        if (strlen(line) >= HELP_COLUMN)
            out_format(&o, "\n%*s", HELP_COLUMN, "");
        out_wrapped(&o, p->help, HELP_COLUMN, HELP_COLUMN, HELP_WIDTH);
    }
    out_format(&o, "\nExample:\n  %s\n", u->example);
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

/* Store the value. Return false if it does not suit the option. */
static bool set_value(const opt *p, const char *text)
{
    opt_list *list = p->target;
    switch (p->kind) {
    case OPT_FLAG:
        *(bool *)p->target = true;
        return true;
    case OPT_TEXT:
    case OPT_FILE:
    case OPT_MODEL:
    case OPT_OUTPUT:
    case OPT_RECORDS:
    case OPT_PROFILE:
        *(const char **)p->target = text;
        return true;
    case OPT_SECRET:
        ((secret *)p->target)->path = text;
        return true;
    case OPT_LIST:
    case OPT_KEY_FILES:
        list->item[list->count++] = text;
        return true;
    case OPT_NUMBER:
        return set_number(text, p->target);
    case OPT_SIZE:
        return set_size(text, p->target);
    case OPT_REAL:
        return set_real(text, p->target);
    }
    return false;
}

/* ---- parsing ---- */

static void fill_getopt(struct option *longs, char *shorts, const opt_usage *u)
{
    size_t n = 0, s = 0;
    const opt *p;
    shorts[s++] = ':';
    for (; n < OPTIONS_MAX - 1 && (p = opt_at(u, n)) != NULL; n++) {
        longs[n] = (struct option){ p->name, opt_wants_value(p) ? required_argument : no_argument,
                                    NULL, FIRST_LONG + (int)n };
        if (p->letter)
            shorts[s++] = p->letter;
        if (p->letter && opt_wants_value(p))
            shorts[s++] = ':';
    }
    shorts[s] = 0;
    longs[n] = (struct option){ NULL, 0, NULL, 0 };
}

const opt *opt_find_letter(const opt_usage *u, int letter)
{
    const opt *p;
    for (size_t i = 0; (p = opt_at(u, i)) != NULL; i++)
        if (p->letter == letter)
            return p;
    return NULL;
}

const opt *opt_find_long(const opt_usage *u, const char *word, const char *end)
{
    const opt *p, *found = NULL;
    size_t len = (size_t)(end - word) - 2, matches = 0;
    for (size_t i = 0; (p = opt_at(u, i)) != NULL; i++) {
        if (strncmp(p->name, word + 2, len) != 0)
            continue;
        if (!p->name[len])
            return p;
        found = p;
        matches++;
    }
    return matches == 1 ? found : NULL;
}

static const opt *option_for(const opt_usage *u, int c)
{
    return c >= FIRST_LONG ? opt_at(u, (size_t)(c - FIRST_LONG)) : opt_find_letter(u, c);
}

static const char *suggest_option(char out[SUGGESTION_BYTES], const opt_usage *u, const char *word)
{
    suggestion s = { .word = { word + 2, strcspn(word + 2, "=") }, .prefix = "--" };
    const opt *p;
    for (size_t i = 0; (p = opt_at(u, i)) != NULL; i++)
        suggestion_try(&s, str_of(p->name));
    return suggestion_text(out, &s);
}

/* Letters that an option once had. */
static const char *former_letter(const char *cmd, int letter)
{
    bool is_count = letter == 'n' && !strcmp(cmd, "split");
    return is_count
               ? ": the number of files is --count N (or -c N), since -n is --dry-run elsewhere"
               : "";
}

/* Report an option that getopt refused, spelled as the user typed it. */
static int say_bad_option(const opt_usage *u, const char *word)
{
    const opt *known = optopt ? option_for(u, optopt) : NULL;
    if (known) /* the value is missing, or the option takes none */
        return say_usage(u->command, "option '--%s' %s", known->name,
                         opt_wants_value(known) ? "needs a value" : "takes no value");
    if (optopt)
        return say_usage(u->command, "unknown option '-%c'%s", optopt,
                         former_letter(u->command, optopt));
    char text[SUGGESTION_BYTES] = "";
    return say_usage(u->command, "unknown or ambiguous option '%s'%s", word,
                     strncmp(word, "--", 2) != 0 ? text : suggest_option(text, u, word));
}

/* Apply one option. Return false, with the exit code in *code, if the command must end. */
static bool apply_option(int *code, const opt_usage *u, int c, char **argv)
{
    const opt *p = c == '?' || c == ':' ? NULL : option_for(u, c);
    size_t i = p >= common && p < common + COMMON ? (size_t)(p - common) : COMMON;
    *code = CODE_USAGE;
    if (!p)
        *code = say_bad_option(u, argv[optind - 1]);
    else if (i == HELP)
        *code = print_help(u);
    else if (i < COMMON && setters[i].set && !setters[i].set(optarg))
        say_usage(u->command, setters[i].message, common[i].name, optarg);
    else if ((i == COMMON || !setters[i].set) && !set_value(p, optarg))
        say_usage(u->command, "invalid value '%s' for --%s", optarg, p->name);
    else
        return true;
    return false;
}

static bool is_list(opt_kind kind)
{
    return kind == OPT_LIST || kind == OPT_KEY_FILES;
}

/* Allocate the lists, each with capacity for every word of the command line. */
static bool make_lists(const opt_usage *u, int argc)
{
    bool ok = true;
    for (size_t i = 0; i < u->count && ok; i++)
        if (is_list(u->options[i].kind)) {
            opt_list *l = u->options[i].target;
            *l = (opt_list){ calloc((size_t)argc, sizeof *l->item), 0 };
            ok = l->item;
        }
    return ok;
}

/* Return true if an option of the command sets the target. */
static bool sets(const opt_usage *u, const void *target)
{
    const opt *p;
    size_t i = 0;
    while ((p = opt_at(u, i)) != NULL && p->target != target)
        i++;
    return p;
}

static bool is_strict(const opt_usage *u)
{
    const opt *p;
    for (size_t i = 0; (p = opt_at(u, i)) != NULL; i++)
        if (!strcmp(p->name, "strict"))
            return *(const bool *)p->target;
    return false;
}

static struct {
    void (*use)(void *ctx, const opt_usage *u);
    void *ctx;
} interceptor;

void opt_intercept(void (*use)(void *ctx, const opt_usage *u), void *ctx)
{
    interceptor.use = use;
    interceptor.ctx = ctx;
}

static int refuse_server(const opt_usage *u, const opt_args *args)
{
    const char *url = model_settings.offline ? arguments_find_url(u, args) : NULL;
    return url ? say_status(HEFT_E_IO, url,
                            "is on a server, and --offline forbids the use of the network")
               : CODE_DONE;
}

bool opt_parse(opt_args *rest, int *code, const opt_usage *u, int argc, char **argv)
{
    struct option longs[OPTIONS_MAX];
    char shorts[2 * OPTIONS_MAX + 2];
    assert(u->count + COMMON < OPTIONS_MAX);
    if (interceptor.use) {
        *rest = (opt_args){ argv + argc, 0 };
        *code = CODE_DONE;
        interceptor.use(interceptor.ctx, u);
        return false;
    }
    fill_getopt(longs, shorts, u);
    opterr = 0;
    optind = 1;
    array_types_release();
    bool ok = make_lists(u, argc);
    if (!ok)
        *code = say_status(HEFT_E_NOMEM, NULL, "no memory for the options of %s", u->command);
    for (int c; ok && (c = getopt_long(argc, argv, shorts, longs, NULL)) != -1;)
        ok = apply_option(code, u, c, argv);
    *rest = (opt_args){ argv + optind, argc - optind };
    model_settings.strict = is_strict(u);
    bool too_few = rest->count < u->min_args;
    if (ok && !too_few && (u->max_args < 0 || rest->count <= u->max_args)) {
        arguments_use_slashes(u, rest);
        *code = refuse_server(u, rest);
        if (!*code)
            *code = secrets_read(u);
        if (!*code)
            *code = stdin_take(u, rest);
        if (!*code)
            *code = hub_take(u, rest);
        model_set_given(rest->item, rest->count);
        ok = false;
        if (!*code) {
            message_set_quiet(model_settings.quiet);
            message_set_lists_all(sets(u, &model_settings.verbose));
            pager_start(u->command);
            sandbox_enter(u, rest);
            return true;
        }
    }
    if (ok)
        *code = too_few
                    ? say_usage(u->command, "expected %s", u->args)
                    : say_usage(u->command, "unexpected argument '%s'", rest->item[u->max_args]);
    opt_release(u);
    return false;
}

void opt_release(const opt_usage *u)
{
    for (size_t i = 0; i < u->count; i++)
        if (is_list(u->options[i].kind)) {
            opt_list *l = u->options[i].target;
            free(l->item);
            *l = (opt_list){ NULL, 0 };
        }
}
