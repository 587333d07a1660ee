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

/* Plan to copy the numbers of `f`, opened from `path`, to blocks of GGUF, if all quantised weights
 * have a scheme that GGUF stores without arithmetic: mxfp4; or to QFloat of a Burnpack, which
 * refuses weights that have no such form. *k must be released, after an error, too. has_casts:
 * --cast may change the type of the blocks. Return an exit code. */
int kept_blocks_open(kept_blocks *k, const session *s, const heft_file *f, const char *path,
                     const heft_format *target, bool has_casts);
/* Return the model that the plan makes; there must be a plan. */
const heft_file *kept_blocks_file(const kept_blocks *k);
void kept_blocks_release(kept_blocks *k);

#endif
