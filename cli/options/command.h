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

typedef enum command_group {
    GROUP_LOOK,
    GROUP_CHANGE,
    GROUP_CHECK,
    GROUP_SHARE,
    COMMAND_GROUPS
} command_group;

/* Traits. */
enum {
    COMMAND_WRITES = 1,         /* an interrupt leaves no half-written file, which is announced */
    COMMAND_PAGED = 2,          /* the results are for people, who may want a pager */
    COMMAND_FOLLOWS_LINKS = 4,  /* the folders that are named, wherever the links lead */
    COMMAND_CHECKS_PARTS = 8,   /* verifies the digest of each part that is read as a whole */
    COMMAND_REPORTS_LOSSES = 16 /* warnings about content that is left out are not needed */
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
    /* Return the name of a file that is written beside the output, or NULL. NULL: there is none. */
    const char *(*writes_beside)(const void *request);
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

#endif
