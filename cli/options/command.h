/* command.h - a command as data: what it is called, what it takes, and the function that runs it.
 *
 * A command is one file, cmd_NAME.c, which ends with its description, and one row in
 * commands.def. Parsing, completion, help, the sandbox and the pager read the description; none
 * of them knows a command by its name. */
#ifndef HEFT_CLI_COMMAND_H
#define HEFT_CLI_COMMAND_H
#include "models/model.h"
#include "options/opt.h"
#include "process/cmd.h"
#include "process/command_session.h"
#include "text/outbuf.h"

typedef enum command_group {
    GROUP_LOOK,
    GROUP_CHANGE,
    GROUP_CHECK,
    GROUP_SHARE,
    COMMAND_GROUPS
} command_group;

/* Traits. */
enum {
    COMMAND_WRITES = 1,          /* an interrupt leaves no half-written file, which is announced */
    COMMAND_PAGED = 2,           /* the results are for people, who may want a pager */
    COMMAND_FOLLOWS_LINKS = 4,   /* the folders that are named, wherever the links lead */
    COMMAND_CHECKS_PARTS = 8,    /* verifies the digest of each part that is read as a whole */
    COMMAND_REPORTS_LOSSES = 16, /* warnings about content that is left out are not needed */
    COMMAND_SERVES = 32          /* answers requests at a socket, which `prepare` opens */
};

/* Common options about models, which commands that look at the bytes of files do not have. */
#define NOT_OF_RAW_FILES                                                                          \
    (WITHOUT(KEY) | WITHOUT(VIEW) | WITHOUT(ACCESS) | WITHOUT(MAX_TENSORS) | WITHOUT(MAX_BYTES) | \
     WITHOUT(QUIET) | WITHOUT(NO_VERIFY) | WITHOUT(OFFLINE) | WITHOUT(FOLLOW_LINKS))

typedef enum output_kind {
    NO_OUTPUT,
    FILE_OUTPUT,
    STDOUT_OUTPUT, /* a file, or stdout if the argument is "-" */
    FOLDER_OUTPUT
} output_kind;

/* The arguments that are inputs and outputs; index -1 is the last argument. */
typedef struct operand_roles {
    int first_input, last_input, output;
    output_kind kind;
} operand_roles;

struct command {
    const char *name, *args; /* "ls", "FILE [GLOB...]": brackets for what may be missing */
    const char *summary;     /* a line in the list of commands */
    const char *description, *example;
    command_group group;
    unsigned traits;
    unsigned without;       /* common options that the command does not have */
    operand_roles operands; /* zero: the first argument is an input */
    /* The options, or a table that the command shares, and its bit there.  Tables end with a row
     * without a name; options without a title have the title "Options". */
    const opt *options;
    const shared_opt *shared;
    unsigned sharer;
    size_t request_bytes;
    /* Fill a zeroed request with what is not zero by default. NULL: nothing. */
    void (*begin)(const session *s, void *request);
    /* Return true if the request writes shares of its output. NULL: it never does. */
    bool (*writes_shares)(const void *request);
    /* Return true if what the request writes is a folder. NULL: the kind of the output says so. */
    bool (*makes_folder)(const void *request);
    /* Return the name of a file that is written beside the output, or NULL. NULL: there is none. */
    const char *(*writes_beside)(const void *request);
    /* Open what the sandbox refuses to open; return an exit code, and keep nothing after an error.
     * NULL: nothing. */
    int (*prepare)(const session *s, void *request);
    /* Run, and return an exit code. The lists of options are released afterwards. */
    int (*run)(const session *s, void *request);
};

extern const command *const commands[];
extern const size_t command_count;

const char *command_group_title(command_group group);
/* Find a command by its name, or by a word that people use for the command. */
const command *command_find(const char *name);
/* Print an error line about a command or option of a module that this build does not have; return
 * the exit code. */
int command_say_left_out(const char *what, const char *module);
/* Print an error line about a word that is no command; return the exit code. */
int command_say_unknown(const char *name);
/* Print the commands and their options as JSON: `heft __describe`. Return an exit code. */
int command_describe_all(void);
/* Run the command with the words after its name; return an exit code. */
int command_run(const command *c, bool no_pager, int argc, char **argv);

/* ---- begins, completes and ends the session of a command ---- */

/* Begin a session of a command, without options. */
void session_begin(session *s, const command *c);
/* Set what follows from the options. Return an exit code. */
int session_complete(session *s);
/* Free what the session owns. */
void session_end(session *s);

/* ---- the files and models that a command line names, in arguments and options ---- */

typedef struct operand {
    const char *path;   /* a visitor may replace it */
    opt_kind kind;      /* OPT_MODEL and OPT_OUTPUT for arguments */
    output_kind output; /* the kind of an OPT_OUTPUT */
    bool is_argument;
    bool is_changed; /* the input is also the output */
} operand;

/* Call visit for each operand that is given, until it returns another code than CODE_DONE, which is
 * returned. */
int operands_visit(const session *s, int (*visit)(void *ctx, operand *o), void *ctx);
/* Return true if an operand is on a server. */
bool operands_use_server(const session *s);

/* ---- name models of the local Hugging Face cache by their repository ---- */

/* Replace an input that begins with "hub:" by its path in the cache. An input that the command
 * would change is refused. Return an exit code. */
int hub_take(session *s, const char **input, bool is_changed);
/* Print the names of the cached repositories. Return an exit code. */
int hub_print(bool as_json);

/* ---- restrict the process to the files and system calls that the command needs ---- */

/* Remember the files that are open; call this before the command opens one. */
void sandbox_begin(void);
/* Restrict this process to the files named on the command line, with the folders around, and to
 * temporary files; refuse system calls that the command does not need. Does nothing under
 * --no-sandbox. A part that the system does not support is left out, with a note under --verbose.
 * Call this before the first thread starts. */
void sandbox_enter(const session *s);

/* ---- words that may end a command line, written for a shell ---- */

typedef enum shell {
    SHELL_BASH, /* quoted words, each on a line */
    SHELL_ZSH,  /* words and descriptions, each with a zero byte behind */
    SHELL_FISH  /* a word, a tab, the description, a zero byte */
} shell;

/* The word that is completed, and facts from the words before. */
typedef struct candidates {
    outbuf *o;
    shell shell;
    heft_str before;           /* stands before each candidate in the word: "--to=" */
    heft_str typed;            /* the rest of the word: candidates begin with this text */
    size_t kept;               /* bytes of both together that bash does not replace */
    char quote;                /* the open quotation, by shell_unquote() */
    uint32_t count;            /* candidates written so far */
    const char *file, *target; /* the first argument and the value of --to, or NULL */
    const char *key;           /* the value of --key, or NULL */
    session session;           /* the file is opened in it */
    bool options_ended;        /* by -- */
} candidates;

/* Announce the kind of the candidates: "words"; "stems", words that go on; "files" and "folders",
 * candidates that only the shell has. */
void candidates_begin(candidates *c, const char *what);
/* Write a candidate that begins with the typed text, if the shell can complete the candidate. */
void candidates_add(candidates *c, heft_str word, const char *description);
/* Write the values of an option. */
void candidates_of_option(candidates *c, const opt *option);
/* Write the values of argument i, by the arguments of the usage: "FILE [GLOB...]". */
void candidates_of_argument(candidates *c, const char *args, size_t i);

enum { COMPLETE_SHELL = 2, COMPLETE_KEPT, COMPLETE_FIRST_WORD }; /* arguments of __complete */

/* Complete the last word of argv: "heft __complete SHELL KEPT WORD...". SHELL is bash, zsh or fish;
 * of the last word bash keeps the first KEPT bytes. Each word is quoted as typed,
 * "heft" left out; fish passes the words before the last without quotation. Prints nothing on
 * stderr, and gives up after some seconds. Return an exit code. */
int complete_run(int argc, char **argv);

#endif
