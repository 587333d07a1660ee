/* opt.h - a command's options as a table, from which come parsing and --help. */
#ifndef HEFT_CLI_OPT_H
#define HEFT_CLI_OPT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum opt_kind {
    OPT_FLAG,   /* bool */
    OPT_TEXT,   /* const char * */
    OPT_LIST,   /* opt_list: may be given several times */
    OPT_NUMBER, /* uint64_t, decimal */
    OPT_SIZE,   /* uint64_t bytes: 500, 500MB, 2GiB */
    OPT_REAL    /* double, not negative */
} opt_kind;

typedef struct opt_list {
    const char **item;
    size_t count;
} opt_list;

typedef struct opt {
    const char *name; /* "keep" for --keep */
    char letter;      /* 'l' for -l, or 0 */
    opt_kind kind;
    void *target;      /* where it goes: see opt_kind */
    const char *value; /* what --help calls the value, or NULL */
    const char *help;
} opt;

typedef struct opt_usage {
    const char *command, *args; /* "ls", "FILE [GLOB...]" */
    const char *description, *example;
    const opt *options;
    size_t count;
    int min_args, max_args; /* max_args -1: any number */
} opt_usage;

typedef struct opt_args {
    char **item;
    int count;
} opt_args;

/* True: go on, with what is no option in *rest.  False: *code is what to exit with. */
bool opt_parse(opt_args *rest, int *code, const opt_usage *u, int argc, char **argv);
/* Frees the lists. */
void opt_release(const opt_usage *u);

#endif
