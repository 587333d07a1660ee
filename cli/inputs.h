/* inputs.h - the files that a command reads, none of which it may replace. */
#ifndef HEFT_CLI_INPUTS_H
#define HEFT_CLI_INPUTS_H
#include "model.h"

typedef struct input {
    const char *path;       /* NULL: there is none */
    const char *label;      /* "the input itself": what is said of an output that is this file */
    const heft_file *model; /* opened by that path: its shards count as well; NULL: a single file */
} input;

/* Whether writing to a file, of which stat() says `about`, would replace one of them, links followed.  true: why, a
 * line that goes with the name of the output, and the exit code that belongs to it. */
bool inputs_contain(char reason[128], int *code, const input *all, size_t count,
                    const struct stat *info);
/* The same for the output of a command; CODE_DONE: none of them, or else it was said. */
int inputs_check(const char *name, const input *all, size_t count, const struct stat *info);

/* ---- several models that become one ---- */

typedef struct inputs { /* begins with paths and count */
    char **paths;
    uint32_t count;
    heft_file **files;
    const heft_file **
        distinct; /* but those that another one has anyway, as when a pattern of the shell names an index and
                               its shards; at least one */
    uint32_t *distinct_index; /* of the kept ones among the files */
    uint32_t distinct_count;
    heft_file *joined;
} inputs;

/* Opens all of them, whole, and says what there is to say of those that are kept.  Not CODE_DONE: said why not. */
int inputs_open(inputs *in);
/* When more than one is kept.  name: what an error line is about. */
int inputs_join(inputs *in, const heft_join_options *options, const char *name);
void inputs_close(inputs *in);
/* The joined one, or the only one. */
const heft_file *inputs_model(const inputs *in);

#endif
