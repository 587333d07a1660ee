/* arguments.h - the arguments of each command that name inputs and outputs. */
#ifndef HEFT_CLI_ARGUMENTS_H
#define HEFT_CLI_ARGUMENTS_H
#include "opt.h"

typedef enum output_kind {
    NO_OUTPUT,
    FILE_OUTPUT,
    STDOUT_OUTPUT, /* a file, or stdout if the argument is "-" */
    FOLDER_OUTPUT
} output_kind;

/* Indices of arguments; -1 is the last argument. */
typedef struct argument_roles {
    const char *command;
    int first_input, last_input, output;
    output_kind kind;
} argument_roles;

/* Return the roles of a command's arguments; NULL if no argument is a file. */
const argument_roles *arguments_of(const char *command);
static inline int argument_index(int argument, const opt_args *args)
{
    return argument < 0 ? args->count + argument : argument;
}
/* Return the first input, output or model of an option that is on a server; NULL: all are local. */
const char *arguments_find_url(const opt_usage *u, const opt_args *args);
/* Make every separator in the arguments and options that are paths a slash. */
void arguments_use_slashes(const opt_usage *u, const opt_args *args);

#endif
