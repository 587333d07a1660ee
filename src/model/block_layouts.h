/* block_layouts.h - the layouts of block types with 32 elements. */
#ifndef HEFT_BLOCK_LAYOUTS_H
#define HEFT_BLOCK_LAYOUTS_H
#include <stdint.h>

/* Layout of a block of 32 elements; the scale is at offset 0. */
typedef struct block32 {
    uint8_t minimum_at; /* offset of the minimum; 0: none */
    uint8_t high_at;    /* offset of the 32 fifth bits; 0: none */
    uint8_t codes_at;   /* offset of the codes */
    uint8_t code_bits;  /* 8, or 4: the upper halves of the bytes are the second 16 elements */
    uint8_t zero_code;  /* the code that means 0 */
} block32;

static const block32 q4_0 = { 0, 0, 2, 4, 8 }, q4_1 = { 2, 0, 4, 4, 0 };
static const block32 q5_0 = { 0, 2, 6, 4, 16 }, q5_1 = { 2, 4, 8, 4, 0 };
static const block32 q8_0 = { 0, 0, 2, 8, 0 }, q8_1 = { 0, 0, 4, 8, 0 };

enum { ELEMENTS32 = 32, HALF32 = ELEMENTS32 / 2 };

#endif
