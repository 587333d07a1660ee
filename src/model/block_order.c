/* block_order.c - byte-swapping of block-quantised types.
 *
 * A program that only copies blocks needs this table, and none of the code that decodes them.
 */
#include "model/blocks.h"

/* Multi-byte numbers of a block: count numbers of `size` bytes from offset `at` on.  A type without
 * a row can only be copied from little-endian files; one without numbers has single bytes only. */
static const struct {
    uint8_t type; /* a heft_dtype */
    uint8_t count, size;
    uint16_t at;
} rows[] = {
    { HEFT_Q4_0, 1, 2, 0 },   { HEFT_Q4_1, 2, 2, 0 },   { HEFT_Q5_0, 1, 2, 0 },
    { HEFT_Q5_0, 1, 4, 2 },   { HEFT_Q5_1, 2, 2, 0 },   { HEFT_Q5_1, 1, 4, 4 },
    { HEFT_Q8_0, 1, 2, 0 },   { HEFT_Q8_1, 2, 2, 0 },   { HEFT_Q2_K, 2, 2, 80 },
    { HEFT_Q3_K, 1, 2, 108 }, { HEFT_Q4_K, 2, 2, 0 },   { HEFT_Q5_K, 2, 2, 0 },
    { HEFT_Q6_K, 1, 2, 208 }, { HEFT_Q8_K, 1, 4, 0 },   { HEFT_Q8_K, 16, 2, 260 },
    { HEFT_IQ4_NL, 1, 2, 0 }, { HEFT_IQ4_XS, 2, 2, 0 }, { HEFT_Q1_0, 1, 2, 0 },
    { HEFT_Q2_0, 1, 2, 0 },   { HEFT_TQ1_0, 1, 2, 52 }, { HEFT_TQ2_0, 1, 2, 64 },
    { HEFT_MXFP4, 0, 0, 0 },  { HEFT_NVFP4, 0, 0, 0 },
};
enum { ROWS = sizeof rows / sizeof *rows };

bool heft_block_can_byteswap(heft_dtype t)
{
    uint32_t i = 0;
    while (i < ROWS && rows[i].type != t)
        i++;
    return i < ROWS;
}

static void swap(uint8_t *p, uint32_t size)
{
    for (uint32_t a = 0, b = size - 1; a < b; a++, b--) {
        uint8_t moved = p[a];
        p[a] = p[b];
        p[b] = moved;
    }
}

void heft_block_byteswap(uint8_t *block, heft_dtype t)
{
    for (uint32_t i = 0; i < ROWS; i++)
        for (uint32_t k = 0; rows[i].type == t && k < rows[i].count; k++)
            swap(block + rows[i].at + k * rows[i].size, rows[i].size);
}
