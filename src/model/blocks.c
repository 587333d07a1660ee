/* blocks.c - the block-quantised types that ggml defines. */
#include "model/blocks.h"

#include "model/block_decode.h"
#include "model/dtype.h"

/* ---- the table ---- */

/* Multi-byte numbers of a block: count numbers of `size` bytes from offset `at` on. */
typedef struct field {
    uint16_t at;
    uint8_t count, size;
} field;

/* A type without a row can only be copied, and only from little-endian files.  A type with neither
 * `layout` nor `decode` is opaque. */
static const struct {
    const block32 *layout;
    void (*decode)(float *out, const uint8_t *block);
    bool can_byteswap; /* fields[] is complete */
    field fields[2];
} rows[HEFT_DTYPES] = {
    [HEFT_Q4_0] = { &q4_0, NULL, true, { { 0, 1, 2 } } },
    [HEFT_Q4_1] = { &q4_1, NULL, true, { { 0, 2, 2 } } },
    [HEFT_Q5_0] = { &q5_0, NULL, true, { { 0, 1, 2 }, { 2, 1, 4 } } },
    [HEFT_Q5_1] = { &q5_1, NULL, true, { { 0, 2, 2 }, { 4, 1, 4 } } },
    [HEFT_Q8_0] = { &q8_0, NULL, true, { { 0, 1, 2 } } },
    [HEFT_Q8_1] = { &q8_1, NULL, true, { { 0, 2, 2 } } },
    [HEFT_Q2_K] = { NULL, decode_q2_k, true, { { 80, 2, 2 } } },
    [HEFT_Q3_K] = { NULL, decode_q3_k, true, { { 108, 1, 2 } } },
    [HEFT_Q4_K] = { NULL, decode_q4_k, true, { { 0, 2, 2 } } },
    [HEFT_Q5_K] = { NULL, decode_q5_k, true, { { 0, 2, 2 } } },
    [HEFT_Q6_K] = { NULL, decode_q6_k, true, { { 208, 1, 2 } } },
    [HEFT_Q8_K] = { NULL, decode_q8_k, true, { { 0, 1, 4 }, { 260, 16, 2 } } },
    [HEFT_IQ4_NL] = { NULL, NULL, true, { { 0, 1, 2 } } },
    [HEFT_IQ4_XS] = { NULL, NULL, true, { { 0, 2, 2 } } },
    [HEFT_Q1_0] = { NULL, NULL, true, { { 0, 1, 2 } } },
    [HEFT_Q2_0] = { NULL, decode_q2_0, true, { { 0, 1, 2 } } },
    [HEFT_TQ1_0] = { NULL, NULL, true, { { 52, 1, 2 } } },
    [HEFT_TQ2_0] = { NULL, NULL, true, { { 64, 1, 2 } } },
    [HEFT_MXFP4] = { NULL, NULL, true, { { 0, 0, 0 } } },
    [HEFT_NVFP4] = { NULL, NULL, true, { { 0, 0, 0 } } },
};

bool heft_block_is_known(heft_dtype t)
{
    return t < HEFT_DTYPES && (rows[t].layout || rows[t].decode);
}

void heft_block_decode(float out[HEFT_BLOCK_ELEMENTS], heft_dtype t, const uint8_t *block)
{
    if (rows[t].layout)
        decode_block32(out, block, *rows[t].layout);
    else
        rows[t].decode(out, block);
}

/* ---- byte order ---- */

bool heft_block_can_byteswap(heft_dtype t)
{
    return t < HEFT_DTYPES && rows[t].can_byteswap;
}

void heft_block_byteswap(uint8_t *block, heft_dtype t)
{
    for (uint32_t i = 0; i < 2; i++) {
        const field *f = &rows[t].fields[i];
        for (uint8_t *p = block + f->at, *end = p + f->count * f->size; p < end; p += f->size)
            for (uint32_t a = 0, b = f->size - 1u; a < b; a++, b--) {
                uint8_t moved = p[a];
                p[a] = p[b];
                p[b] = moved;
            }
    }
}
