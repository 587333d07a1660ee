/* inputs.h - the files that a command reads, none of which it may replace. */
#ifndef HEFT_CLI_INPUTS_H
#define HEFT_CLI_INPUTS_H
#include "model.h"

typedef struct input {
    const char *path;       /* NULL: there is none */
    const char *is;         /* "the input itself": what is said of an output that is this file */
    const heft_file *model; /* opened by that path: its shards count as well; NULL: a single file */
} input;

/* Whether writing to a file, of which stat() says `about`, would replace one of them, links followed.  true: why, a
 * line that goes with the name of the output, and the exit code that belongs to it. */
bool inputs_have(char why[128], int *code, const input *all, size_t count,
                 const struct stat *about);
/* The same for the output of a command; CODE_DONE: none of them, or else it was said. */
int inputs_check(const char *name, const input *all, size_t count, const struct stat *about);

#endif
