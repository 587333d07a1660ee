/* unmatched.h - patterns that match no tensor: a warning with a hint, an error under --strict. */
#ifndef HEFT_CLI_UNMATCHED_H
#define HEFT_CLI_UNMATCHED_H
#include "process/cmd.h"

typedef struct unmatched {
    const heft_file *f;
    const char *path;
    bool strict;    /* --strict: an error */
    bool no_memory; /* a match could not be tested */
    int code;       /* CODE_USAGE after an error */
} unmatched;

/* Report a pattern of --OPTION, or of an argument if option is NULL, that matches no tensor. */
void unmatched_say(unmatched *u, const char *option, const char *glob);
/* Report the pattern if no tensor of the file matches it. */
void unmatched_check(unmatched *u, const char *option, const char *glob);

#endif
