/* block_tensors.c - decodes tensors of block types of GGUF, which have scales in their blocks. */
#include "base/checked_math.h"
#include "model/float.h"
#include "scheme/encoding.h"

enum { LONGEST = 256 }; /* most elements of a block */

static heft_status decode(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    float run[HEFT_RUN + LONGEST]; /* HEFT_RUN is a multiple of LONGEST */
    heft_dtype type = r->d->part[HEFT_ROLE_WEIGHT].dtype;
    const heft_dtype_info *info = heft_dtype_get(type);
    uint32_t elements = info->block_elems, bytes = info->block_bytes;
    uint64_t first = row * r->d->columns + column, block = heft_div(first, elements);
    size_t skip = (size_t)(first - block * elements);
    size_t blocks = (size_t)heft_div_up(skip + count, elements);
    const uint8_t *p = heft_decoder_bytes(r, HEFT_ROLE_WEIGHT, block * bytes, blocks * bytes);
    if (!p)
        return r->st;
    (void)heft_floats_from(run, type, p, blocks * elements);
    memcpy(out, run + skip, count * sizeof *out);
    return r->st;
}

const heft_scheme_decoder heft_decoder_of_blocks = { NULL, decode, NULL };

/* ---- integers ---- */

/* A block of q8_0 or q4_0: a scale in f16, then 32 integers. */
enum { BLOCK = 32, HALF = BLOCK / 2, SCALE = 2 };

static const char *check(const heft_decoding *d, uint32_t *bits, uint64_t *run)
{
    heft_dtype t = d->part[HEFT_ROLE_WEIGHT].dtype;
    *bits = t == HEFT_Q4_0 ? 4 : 8;
    *run = BLOCK;
    return t == HEFT_Q4_0 || t == HEFT_Q8_0 ? NULL : "its blocks are not integers with a scale";
}

static const uint8_t *read_blocks(heft_decoder *r, uint64_t first, size_t blocks)
{
    uint32_t bytes = heft_dtype_get(r->d->part[HEFT_ROLE_WEIGHT].dtype)->block_bytes;
    return heft_decoder_bytes(r, HEFT_ROLE_WEIGHT, first * bytes, blocks * bytes);
}

static bool integers(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    heft_dtype t = r->d->part[HEFT_ROLE_WEIGHT].dtype;
    uint32_t bytes = heft_dtype_get(t)->block_bytes;
    uint64_t first = row * r->d->columns + column;
    size_t skip = (size_t)(first % BLOCK);
    const uint8_t *p = read_blocks(r, first / BLOCK, (skip + count + BLOCK - 1) / BLOCK);
    for (size_t i = skip; p && i < skip + count; i++) {
        const uint8_t *code = p + i / BLOCK * bytes + SCALE;
        size_t at = i % BLOCK;
        int32_t low = code[at % HALF] & 15, high = code[at % HALF] >> 4;
        *out++ = t == HEFT_Q4_0 ? (float)((at < HALF ? low : high) - 8) : (float)(int8_t)code[at];
    }
    return p;
}

static bool scale_of(heft_decoder *r, uint64_t row, uint64_t column, float *out)
{
    const uint8_t *p = read_blocks(r, (row * r->d->columns + column) / BLOCK, 1);
    if (p)
        *out = heft_get_half(p);
    return p;
}

const heft_integer_form heft_integers_of_blocks = { check, integers, scale_of };
