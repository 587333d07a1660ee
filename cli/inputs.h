/* inputs.h - the files that a command reads, none of which it may replace. */
#ifndef HEFT_CLI_INPUTS_H
#define HEFT_CLI_INPUTS_H
#include "model.h"

typedef struct input {
    const char *path;       /* NULL: there is none */
    const char *is;         /* "the input itself": what is said of an output that is this file */
    const heft_file *model; /* opened by that path: its shards count as well; NULL: a single file */
} input;

/* Whether input i of so many, all open, is a file that another one of them has anyway, as when patterns of the shell name
 * an index and its shards; *no_memory is set when that cannot be told. */
bool inputs_is_part(bool *no_memory, char *const *paths, heft_file *const *files, uint32_t count,
                    uint32_t i);

/* Whether writing to a file, of which stat() says `about`, would replace one of them, links followed.  true: why, a
 * line that goes with the name of the output, and the exit code that belongs to it. */
bool inputs_have(char why[128], int *code, const input *all, size_t count,
                 const struct stat *about);
/* The same for the output of a command; CODE_DONE: none of them, or else it was said. */
int inputs_check(const char *name, const input *all, size_t count, const struct stat *about);

#endif
