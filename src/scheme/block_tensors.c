/* block_tensors.c - decodes tensors of block types of GGUF, which have scales in their blocks. */
#include "base/checked_math.h"
#include "scheme/decoding.h"

enum { LONGEST = 256 }; /* most elements of a block */

static heft_status decode(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    float run[HEFT_RUN + LONGEST]; /* HEFT_RUN is a multiple of LONGEST */
    heft_dtype type = r->d->part[HEFT_ROLE_WEIGHT].dtype;
    const heft_dtype_info *info = heft_dtype_get(type);
    uint32_t elements = info->block_elems, bytes = info->block_bytes;
    uint64_t first = row * r->d->columns + column, block = heft_div(first, elements);
    size_t skip = (size_t)(first - block * elements);
    size_t blocks = (size_t)heft_div(skip + count + elements - 1, elements);
    const uint8_t *p = heft_decoder_bytes(r, HEFT_ROLE_WEIGHT, block * bytes, blocks * bytes);
    if (!p)
        return r->st;
    (void)heft_dtype_cast(run, HEFT_F32, p, type, blocks * elements);
    memcpy(out, run + skip, count * sizeof *out);
    return r->st;
}

const heft_scheme_decoder heft_decoder_of_blocks = { NULL, decode, NULL };
