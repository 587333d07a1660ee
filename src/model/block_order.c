/* block_order.c - byte-swapping of block-quantised types.
 *
 * A program that only copies blocks needs this table, and none of the code that decodes them.
 */
#include "model/blocks.h"

/* Multi-byte numbers of a block: count numbers of `size` bytes from offset `at` on. */
typedef struct field {
    uint16_t at;
    uint8_t count, size;
} field;

/* A type without a row can only be copied from little-endian files. */
static const struct {
    bool can_byteswap; /* fields[] is complete */
    field fields[2];
} rows[HEFT_DTYPES] = {
    [HEFT_Q4_0] = { true, { { 0, 1, 2 } } },
    [HEFT_Q4_1] = { true, { { 0, 2, 2 } } },
    [HEFT_Q5_0] = { true, { { 0, 1, 2 }, { 2, 1, 4 } } },
    [HEFT_Q5_1] = { true, { { 0, 2, 2 }, { 4, 1, 4 } } },
    [HEFT_Q8_0] = { true, { { 0, 1, 2 } } },
    [HEFT_Q8_1] = { true, { { 0, 2, 2 } } },
    [HEFT_Q2_K] = { true, { { 80, 2, 2 } } },
    [HEFT_Q3_K] = { true, { { 108, 1, 2 } } },
    [HEFT_Q4_K] = { true, { { 0, 2, 2 } } },
    [HEFT_Q5_K] = { true, { { 0, 2, 2 } } },
    [HEFT_Q6_K] = { true, { { 208, 1, 2 } } },
    [HEFT_Q8_K] = { true, { { 0, 1, 4 }, { 260, 16, 2 } } },
    [HEFT_IQ4_NL] = { true, { { 0, 1, 2 } } },
    [HEFT_IQ4_XS] = { true, { { 0, 2, 2 } } },
    [HEFT_Q1_0] = { true, { { 0, 1, 2 } } },
    [HEFT_Q2_0] = { true, { { 0, 1, 2 } } },
    [HEFT_TQ1_0] = { true, { { 52, 1, 2 } } },
    [HEFT_TQ2_0] = { true, { { 64, 1, 2 } } },
    [HEFT_MXFP4] = { true, { { 0, 0, 0 } } },
    [HEFT_NVFP4] = { true, { { 0, 0, 0 } } },
};

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
