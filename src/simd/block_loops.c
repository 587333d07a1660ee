/* block_loops.c - decoding of block types, compiled for each instruction set: meson.build renames
 * heft_block_loops() for the set.  A loop for each type has the layout as a constant. */
#include "simd/block_loops.h"

#include "simd/block_steps.h"

static inline void decode_all32(float *restrict out, const uint8_t *restrict b, size_t count,
                                block32 layout, size_t bytes)
{
    for (size_t i = 0; i < count; i++)
        decode_block32(out + i * ELEMENTS32, b + i * bytes, layout);
}

static void q4_0_blocks(float *restrict out, const uint8_t *restrict b, size_t count)
{
    decode_all32(out, b, count, q4_0, 18);
}

static void q4_1_blocks(float *restrict out, const uint8_t *restrict b, size_t count)
{
    decode_all32(out, b, count, q4_1, 20);
}

static void q5_0_blocks(float *restrict out, const uint8_t *restrict b, size_t count)
{
    decode_all32(out, b, count, q5_0, 22);
}

static void q5_1_blocks(float *restrict out, const uint8_t *restrict b, size_t count)
{
    decode_all32(out, b, count, q5_1, 24);
}

static void q8_0_blocks(float *restrict out, const uint8_t *restrict b, size_t count)
{
    decode_all32(out, b, count, q8_0, 34);
}

static void q8_1_blocks(float *restrict out, const uint8_t *restrict b, size_t count)
{
    decode_all32(out, b, count, q8_1, 36);
}

typedef void decode_one(float *restrict out, const uint8_t *restrict b);

static const struct {
    heft_dtype type;
    void (*all)(float *restrict out, const uint8_t *restrict b, size_t count);
    decode_one *one; /* of 64 or 256 elements */
} rows[] = {
    { HEFT_Q4_0, q4_0_blocks, NULL }, { HEFT_Q4_1, q4_1_blocks, NULL },
    { HEFT_Q5_0, q5_0_blocks, NULL }, { HEFT_Q5_1, q5_1_blocks, NULL },
    { HEFT_Q8_0, q8_0_blocks, NULL }, { HEFT_Q8_1, q8_1_blocks, NULL },
    { HEFT_Q2_0, NULL, decode_q2_0 }, { HEFT_Q2_K, NULL, decode_q2_k },
    { HEFT_Q3_K, NULL, decode_q3_k }, { HEFT_Q4_K, NULL, decode_q4_k },
    { HEFT_Q5_K, NULL, decode_q5_k }, { HEFT_Q6_K, NULL, decode_q6_k },
    { HEFT_Q8_K, NULL, decode_q8_k },
};

void heft_block_loops(float *out, heft_dtype from, const uint8_t *blocks, size_t count)
{
    const heft_dtype_info *d = heft_dtype_get(from);
    size_t i = 0;
    while (rows[i].type != from)
        i++;
    if (rows[i].all) {
        rows[i].all(out, blocks, count);
        return;
    }
    for (; count; count--, out += d->block_elems, blocks += d->block_bytes)
        rows[i].one(out, blocks);
}
