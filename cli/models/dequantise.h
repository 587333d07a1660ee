/* dequantise.h - the model that a model with quantised tensors represents, for --dequantize. */
#ifndef HEFT_CLI_DEQUANTISE_H
#define HEFT_CLI_DEQUANTISE_H
#include <heft/scheme.h>

#include "process/command_session.h"

typedef struct dequantised {
    heft_schemes *schemes;
    heft_file *model;
} dequantised;

/* Open what `f`, opened from `path`, represents; `type` is the element type, or empty for that of
 * each tensor. Without quantised tensors it is an error. *d must be released, after an error, too.
 * Return an exit code. */
int dequantise(dequantised *d, const session *s, const heft_file *f, const char *path,
               const char *type);
/* Refuse a target format in which the parts of a quantised tensor would be tensors of their own,
 * with the ways on. f is not refused in its own format. Return an exit code. */
int dequantise_check_target(const session *s, const heft_file *f, const char *path,
                            const heft_format *target);
void dequantised_release(dequantised *d);

#endif
