/* opt.h - describe a command's options in a table, for parsing and for --help. */
#ifndef HEFT_CLI_OPT_H
#define HEFT_CLI_OPT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum opt_kind {
    OPT_FLAG,      /* bool */
    OPT_TEXT,      /* const char * */
    OPT_FILE,      /* const char *, path of a file to read */
    OPT_MODEL,     /* const char *, path of a model to read */
    OPT_OUTPUT,    /* const char *, path of a file to write; - is stdout */
    OPT_RECORDS,   /* const char *, beginning of the paths of files to read: STEM.1, STEM.2, ... */
    OPT_PROFILE,   /* const char *, path or name of a profile to read */
    OPT_SECRET,    /* secret, path of a file to read before the sandbox begins */
    OPT_LIST,      /* opt_list; the option may be repeated */
    OPT_KEY_FILES, /* opt_list of KEY=FILE, with files to read; the option may be repeated */
    OPT_NUMBER,    /* uint64_t, decimal */
    OPT_SIZE,      /* uint64_t in bytes: 500, 500MB, 2GiB */
    OPT_REAL       /* double, not negative */
} opt_kind;

typedef struct opt_list {
    const char **item;
    size_t count;
} opt_list;

typedef struct opt {
    const char *name; /* "keep" for --keep */
    char letter;      /* 'l' for -l, or 0 */
    opt_kind kind;
    void *target;      /* variable of the type that opt_kind says */
    const char *value; /* name of the value in --help, or NULL */
    const char *help;
} opt;

typedef struct opt_usage {
    const char *command, *args; /* "ls", "FILE [GLOB...]" */
    const char *description, *example;
    const opt *options;
    size_t count;
    int min_args, max_args; /* max_args -1: no maximum */
} opt_usage;

typedef struct opt_args {
    char **item;
    int count;
} opt_args;

/* Parse the command line and enter the sandbox, after which only the files that the command line
 * names can be opened. Return true with the arguments in *rest, or false with the exit code in
 * *code. */
bool opt_parse(opt_args *rest, int *code, const opt_usage *u, int argc, char **argv);
/* Let every later opt_parse() pass the description of the command to `use` instead of parsing, and
 * return false with CODE_DONE. */
void opt_intercept(void (*use)(void *ctx, const opt_usage *u), void *ctx);
/* Return option i of the command, its own first, or NULL after the last. */
const opt *opt_at(const opt_usage *u, size_t i);
/* Find an option by the spelling between `word` and `end`: "--long", also abbreviated.
 * NULL: unknown or ambiguous. */
const opt *opt_find_long(const opt_usage *u, const char *word, const char *end);
const opt *opt_find_letter(const opt_usage *u, int letter);
static inline bool opt_wants_value(const opt *o)
{
    return o->kind != OPT_FLAG;
}
/* Free the lists. */
void opt_release(const opt_usage *u);

#endif
