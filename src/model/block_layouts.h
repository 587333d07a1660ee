/* block_layouts.h - the layouts of block types with 32 elements, and the numbers that codes of
 * 4 bits stand for. */
#ifndef HEFT_BLOCK_LAYOUTS_H
#define HEFT_BLOCK_LAYOUTS_H
#include <stdint.h>

#include "model/float.h"

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

static const int8_t iq4_numbers[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                        1,    13,   25,  38,  53,  69,  89,  113 };
/* Twice the numbers of f4_e2m1; code 8 is 0, not -0.  The scales below are halves to match. */
static const int8_t fp4_numbers[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

/* Return half of a scale of mxfp4, 2^(code - 127).  Code 255 is a number like the others, which is
 * NaN in f8_e8m0. */
static inline float mxfp4_scale(uint32_t code)
{
    enum { HALF_OF_SMALLEST = 0x00200000 /* 2^-128 */, EXPONENT = 23 };
    return heft_f32_of(code < 2 ? (uint32_t)HALF_OF_SMALLEST << code : (code - 1) << EXPONENT);
}

/* Return half of a scale of nvfp4: f8_e4m3 without a sign, whose bit counts for 0xFF only, which is
 * 480, while 0x7F is 0. */
static inline float nvfp4_scale(uint32_t code)
{
    uint32_t magnitude = code & 0x7F, exponent = magnitude >> 3;
    float mantissa = (float)(exponent ? 8 + (magnitude & 7) : magnitude);
    float unit = heft_f32_of((116 + (exponent ? exponent : 1)) << 23); /* at least 2^-10 */
    return code == 0x7F ? 0 : mantissa * unit;
}

#endif
