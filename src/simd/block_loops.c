/* block_loops.c - decoding of block types, compiled for each instruction set: meson.build renames
 * heft_block_loops() for the set.  A loop for each type has the layout as a constant. */
#include "simd/block_loops.h"

#include "simd/block_steps.h"
#include "simd/code_steps.h"
#include "simd/grid_steps.h"

static inline void decode_all32(float *restrict out, heft_dtype type, const uint8_t *restrict b,
                                size_t count, block32 l)
{
    const size_t bytes = l.codes_at + (size_t)ELEMENTS32 / 8 * l.code_bits;
    for (; count; count--, out += ELEMENTS32, b += bytes)
        if (is_finite(b) && is_finite(b + l.minimum_at))
            decode_block32(out, b, l);
        else
            heft_decode_block(out, type, b);
}

static void q4_0_blocks(float *restrict out, const uint8_t *restrict b, size_t count)
{
    decode_all32(out, HEFT_Q4_0, b, count, q4_0);
}

static void q4_1_blocks(float *restrict out, const uint8_t *restrict b, size_t count)
{
    decode_all32(out, HEFT_Q4_1, b, count, q4_1);
}

static void q5_0_blocks(float *restrict out, const uint8_t *restrict b, size_t count)
{
    decode_all32(out, HEFT_Q5_0, b, count, q5_0);
}

static void q5_1_blocks(float *restrict out, const uint8_t *restrict b, size_t count)
{
    decode_all32(out, HEFT_Q5_1, b, count, q5_1);
}

static void q8_0_blocks(float *restrict out, const uint8_t *restrict b, size_t count)
{
    decode_all32(out, HEFT_Q8_0, b, count, q8_0);
}

static void q8_1_blocks(float *restrict out, const uint8_t *restrict b, size_t count)
{
    decode_all32(out, HEFT_Q8_1, b, count, q8_1);
}

enum { NO_HALF = 255 };

static const struct {
    heft_dtype type;
    void (*all)(float *restrict out, const uint8_t *restrict b, size_t count);
    void (*one)(float *restrict out, const uint8_t *restrict b); /* of 64 or 256 elements */
    /* Offsets of f16, the same if there is no minimum.  NO_HALF: the loop takes every block. */
    uint8_t scale_at, minimum_at;
} rows[] = {
    { HEFT_Q4_0, q4_0_blocks, NULL, 0, 0 },
    { HEFT_Q4_1, q4_1_blocks, NULL, 0, 0 },
    { HEFT_Q5_0, q5_0_blocks, NULL, 0, 0 },
    { HEFT_Q5_1, q5_1_blocks, NULL, 0, 0 },
    { HEFT_Q8_0, q8_0_blocks, NULL, 0, 0 },
    { HEFT_Q8_1, q8_1_blocks, NULL, 0, 0 },
    { HEFT_Q2_0, NULL, decode_q2_0, 0, 0 },
    { HEFT_Q2_K, NULL, decode_q2_k, 80, 82 },
    { HEFT_Q3_K, NULL, decode_q3_k, 108, 108 },
    { HEFT_Q4_K, NULL, decode_q4_k, 0, 2 },
    { HEFT_Q5_K, NULL, decode_q5_k, 0, 2 },
    { HEFT_Q6_K, NULL, decode_q6_k, 208, 208 },
    { HEFT_Q1_0, NULL, decode_q1_0, 0, 0 },
    { HEFT_TQ1_0, NULL, decode_tq1_0, 52, 52 },
    { HEFT_TQ2_0, NULL, decode_tq2_0, 64, 64 },
    { HEFT_IQ4_NL, NULL, decode_iq4_nl, 0, 0 },
    { HEFT_IQ4_XS, NULL, decode_iq4_xs, 0, 0 },
    { HEFT_MXFP4, NULL, decode_mxfp4, NO_HALF, NO_HALF },
    { HEFT_NVFP4, NULL, decode_nvfp4, NO_HALF, NO_HALF },
    { HEFT_IQ2_XXS, NULL, decode_iq2_xxs, 0, 0 },
    { HEFT_IQ2_XS, NULL, decode_iq2_xs, 0, 0 },
    { HEFT_IQ2_S, NULL, decode_iq2_s, 0, 0 },
    { HEFT_IQ3_XXS, NULL, decode_iq3_xxs, 0, 0 },
    { HEFT_IQ3_S, NULL, decode_iq3_s, 0, 0 },
    { HEFT_IQ1_S, NULL, decode_iq1_s, 0, 0 },
    { HEFT_IQ1_M, NULL, decode_iq1_m, NO_HALF, NO_HALF },
};

/* True if the loop of a row takes a block. */
static inline bool takes(size_t row, const uint8_t *b)
{
    return rows[row].scale_at == NO_HALF ||
           (is_finite(b + rows[row].scale_at) && is_finite(b + rows[row].minimum_at));
}

void heft_block_loops(float *out, heft_dtype from, const uint8_t *blocks, size_t count)
{
    const heft_dtype_info *d = heft_dtype_get(from);
    size_t i = 0, known = sizeof rows / sizeof *rows;
    while (i < known && rows[i].type != from)
        i++;
    if (i < known && rows[i].all) {
        rows[i].all(out, blocks, count);
        return;
    }
    for (; count; count--, out += d->block_elems, blocks += d->block_bytes)
        if (i < known && takes(i, blocks))
            rows[i].one(out, blocks);
        else
            heft_decode_block(out, from, blocks);
}
