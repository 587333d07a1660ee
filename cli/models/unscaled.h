/* unscaled.h - block types whose numbers lack a scale: GGUF stores the scale of a whole tensor of
 * the type nvfp4 as another tensor. */
#ifndef HEFT_CLI_UNSCALED_H
#define HEFT_CLI_UNSCALED_H
#include <heft/scheme.h>

#include "process/command_session.h"

/* Tensors of a file whose values are stated without a scale; begin with all members zero. */
typedef struct unscaled {
    heft_schemes *schemes; /* NULL until a tensor needs them */
    uint64_t count;
    heft_str tensor, scale; /* the first tensor, and its scale */
} unscaled;

/* Count the tensor if its scale is another tensor of f. Return an exit code. */
int unscaled_add(unscaled *u, const session *s, const heft_file *f, const char *path,
                 uint32_t tensor);
/* Warn if a tensor was counted, and release u. */
void unscaled_end(unscaled *u, const char *path);

#endif
