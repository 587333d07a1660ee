/* kept_blocks.h - a model whose quantised weights become blocks of GGUF, or QFloat of Burn, with
 * the same numbers. */
#ifndef HEFT_CLI_KEPT_BLOCKS_H
#define HEFT_CLI_KEPT_BLOCKS_H
#include <heft/quantise.h>

#include "process/command_session.h"

typedef struct kept_blocks {
    heft_schemes *schemes;
    heft_quantisation *plan; /* NULL: the model has no such weights, or others as well */
} kept_blocks;

typedef struct kept_options {
    const heft_format *target;
    bool has_casts; /* --cast may change the type of the blocks */
    /* Return whether --cast gives the tensor a type. */
    bool (*is_cast)(void *ctx, const heft_tensor *t);
    void *ctx;
} kept_options;

/* Plan to copy the numbers of `f`, opened from `path`, to blocks of GGUF, if all quantised weights
 * have a scheme that GGUF stores without arithmetic: mxfp4; or to QFloat of a Burnpack, which
 * refuses weights that have no such form, and also takes the blocks q8_0 and q4_0 of GGUF. *k must
 * be released, after an error, too. Return an exit code. */
int kept_blocks_open(kept_blocks *k, const session *s, const heft_file *f, const char *path,
                     const kept_options *o);
/* Return the model that the plan makes; there must be a plan. */
const heft_file *kept_blocks_file(const kept_blocks *k);
void kept_blocks_release(kept_blocks *k);

#endif
