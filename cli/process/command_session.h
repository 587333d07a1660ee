/* command_session.h - a session: one run of a command, and what the command line asks for. The
 * functions that need it get it as an argument, and change nothing. */
#ifndef HEFT_CLI_COMMAND_SESSION_H
#define HEFT_CLI_COMMAND_SESSION_H
#include <heft/heft_ext.h>
#include <stdbool.h>

typedef struct opt_list {
    const char **item;
    size_t count;
} opt_list;

typedef struct opt_args {
    char **item;
    int count;
} opt_args;

typedef struct command command;

typedef struct kept_path {
    struct kept_path *next;
    char text[];
} kept_path;

typedef struct session {
    const command *command;
    const char *name; /* of the command */
    void *request;    /* the command's: its options set the members */
    opt_args args;
    /* Options of every command, and those that mean the same in several. */
    unsigned colour, messages, access; /* numbers of the words after the options */
    const char *key;                   /* --key, or NULL */
    opt_list views;                    /* --view */
    uint32_t threads;                  /* --threads; 0: one for each processor */
    heft_limits limits;                /* --max-tensors and --max-bytes; 0 for the defaults */
    bool strict;                       /* warnings are errors */
    bool quiet, verbose;               /* print neither notes nor warnings; print notes, too */
    const char *map;                   /* --map, or NULL */
    const char *pre_tokenizer;         /* --pre-tokenizer, or NULL */
    bool allow_unmatched;              /* tensors that no rule of the map matches are kept */
    bool raw_tensors;                  /* cast parts of quantised tensors as numbers */
    bool no_verify;                    /* ignore wrong checksums */
    bool offline;                      /* refuse files on servers */
    bool follow_links;                 /* links of a model's folder may leave the folder */
    bool no_pager, no_sandbox, help;
    /* Consequences of the command and its options. */
    bool checks_parts;   /* digests of parts are compared when they are read as a whole */
    bool reports_losses; /* what a conversion reports is no warning of opening */
    heft_host host;      /* has the threads */
    heft_executor executor;
    heft_read_counter bytes_read; /* all files together */
    heft_folder given;            /* the arguments, if there are several: a shard whose set is given
                                   * as a whole is not reported */
    struct array_types *types;    /* --view, or NULL */
    bool reads_stdin;             /* an input is "-" */
    bool is_cache;                /* the input is "hub:", the cache itself */
    kept_path *paths;             /* arguments that were names in the cache */
} session;

enum { SESSION_TENSORS = 16 << 20 }; /* tensors of a file without --max-tensors */

#endif
