/* inputs.h - the input files of a command, none of which may be overwritten. */
#ifndef HEFT_CLI_INPUTS_H
#define HEFT_CLI_INPUTS_H
#include <heft/scheme.h>

#include "models/model.h"
#include "process/command_session.h"

typedef struct dequantised {
    heft_schemes *schemes;
    heft_file *model;
} dequantised;

/* Open what `f`, opened from `path`, represents; `type` is the element type, or empty for that of
 * each tensor; with_blocks: decode block types of GGUF, too. Without quantised tensors it is an
 * error. *d must be released, after an error, too. Return an exit code. */
int dequantise(dequantised *d, const session *s, const heft_file *f, const char *path,
               const char *type, bool with_blocks);
/* Refuse a target format in which the parts of a quantised tensor would be tensors of their own,
 * with the ways on. f is not refused in its own format, and a tensor with a layout of its own is
 * left to the conversion. Return an exit code. */
int dequantise_check_target(const session *s, const heft_file *f, const char *path,
                            const heft_format *target);
void dequantised_release(dequantised *d);

typedef struct input {
    const char *path;  /* NULL if the input is not given */
    const char *label; /* "the input itself": noun phrase for the error line */
    /* model opened from path, whose shards count as inputs, or NULL for a single file */
    const heft_file *model;
} input;

/* Return true if `info`, the stat() of an output with links followed, is an input. Then `reason` is
 * the text of an error line and *status the status. Also true if memory ran out before the answer
 * was known. */
bool inputs_contain(char reason[128], heft_status *status, const input *all, size_t count,
                    const struct stat *info);
/* Check the output `name` with inputs_contain() and print the error line. Return an exit code. */
int inputs_check(const char *name, const input *all, size_t count, const struct stat *info);

/* Refuse an output that is the input, a folder, or an existing file without `force`; out NULL is
 * stdout. Return an exit code. */
int inputs_check_output(const char *out, const input *in, bool force);

/* ---- several models as input ---- */

typedef struct inputs { /* initialise session, paths and count, zero the rest */
    const session *session;
    char **paths;
    uint32_t count;
    heft_file **files;
    /* files without the shards of other inputs (a shell pattern may match an index and its shards);
     * at least one file */
    const heft_file **distinct;
    uint32_t *distinct_index;    /* distinct_index[i] is the index of distinct[i] in files */
    const char **distinct_paths; /* heft_error.input counts them */
    uint32_t distinct_count;
    heft_file *joined;
    dequantised decoded; /* the model that they represent, if asked for */
} inputs;

/* Open all files, each of which must be complete, and print the warnings about the distinct ones.
 * Return an exit code. */
int inputs_open(inputs *in);
/* Join the distinct files if there are several. name is the file named in an error line. Return an
 * exit code. */
int inputs_join(inputs *in, const heft_join_options *options, const char *name);
/* Decode the quantised tensors of the joined model, see dequantise(). Several inputs must not have
 * settings of their own in several folders. Return an exit code. */
int inputs_dequantise(inputs *in, const char *type);
/* Refuse a target that has no form for a quantised tensor of the inputs, unless they have been
 * decoded. Return an exit code. */
int inputs_check_target(const inputs *in, const heft_format *target);
void inputs_close(inputs *in);
/* Return the joined model, or the only one, or what it represents. */
const heft_file *inputs_model(const inputs *in);

#endif
