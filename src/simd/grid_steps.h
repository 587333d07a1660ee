/* grid_steps.h - decoding of block types with code books, 16 elements at a time.
 * model/grid_blocks.c is the specification and describes the layouts. */
#ifndef HEFT_GRID_STEPS_H
#define HEFT_GRID_STEPS_H
#include "base/compiler.h"
#include "model/block_grids.h"
#include "simd/block_steps.h"

enum { PAIRS = BLOCK / 16 }; /* pairs of groups of eight elements */

#define TWICE(a, b, c, d, e, f, g, h) a, b, c, d, e, f, g, h, a, b, c, d, e, f, g, h

static const heft_code_numbers iq2_numbers = {
    { HEFT_FOUR_TIMES(8, 25, 43, 0) }, .bits = 2, .base = 8, .factor = 17, .shift = 1, .mask = 1
};
static const heft_code_numbers iq3_xxs_numbers = { { TWICE(4, 12, 20, 28, 36, 44, 52, 62) },
                                                   .bits = 3,
                                                   .base = 4,
                                                   .factor = 8,
                                                   .add = 1,
                                                   .shift = 2,
                                                   .mask = 2 };
static const heft_code_numbers iq3_s_numbers = {
    { TWICE(1, 3, 5, 7, 9, 11, 13, 15) }, .bits = 3, .base = 1, .factor = 2
};
/* Eight times -1, 0 and 1, plus 1. */
static const heft_code_numbers iq1_numbers = {
    { HEFT_FOUR_TIMES(-7, 1, 9, 0) }, .bits = 2, .base = 0x79, .factor = 8, .flip = 0x80
};

/* ---- iq2 ---- */

/* Return the scale of a half byte; scale: a quarter of the block's. */
static inline float iq2_scale(float scale, uint32_t code)
{
    return scale * (0.5f + (float)(int32_t)(code & 15));
}

static inline void decode_iq2_xxs(float *restrict out, const uint8_t *restrict b)
{
    enum { CODES = 2 };
    float scale = half_at(b) * 0.25f;
    heft_coded c;
    c.out = out;
    for (uint32_t k = 0; k < PAIRS; k++) {
        const uint8_t *p = b + CODES + k / 2 * 8, *index = p + k % 2 * 2;
        uint32_t word = heft_le32(p + 4), signs = word >> k % 2 * 14;
        uint32_t codes[2] = { heft_grid_at(heft_grid_iq2_xxs, HEFT_GRID_IQ2_XXS, index[0]),
                              heft_grid_at(heft_grid_iq2_xxs, HEFT_GRID_IQ2_XXS, index[1]) };
        heft_put_coded(&c, k, &iq2_numbers, codes,
                       heft_grid_signs(signs & 127) | heft_grid_signs(signs >> 7 & 127) << 8,
                       iq2_scale(scale, word >> 28));
    }
    heft_end_coded(&c, PAIRS);
}

static inline void decode_iq2_xs(float *restrict out, const uint8_t *restrict b)
{
    enum { CODES = 2, SCALES = 66 };
    float scale = half_at(b) * 0.25f;
    heft_coded c;
    c.out = out;
    for (uint32_t k = 0; k < PAIRS; k++) {
        uint32_t pair = heft_le32(b + CODES + 4 * k);
        uint32_t codes[2] = { heft_grid_at(heft_grid_iq2_xs, HEFT_GRID_IQ2_XS, pair & 511),
                              heft_grid_at(heft_grid_iq2_xs, HEFT_GRID_IQ2_XS, pair >> 16 & 511) };
        heft_put_coded(&c, k, &iq2_numbers, codes,
                       heft_grid_signs(pair >> 9 & 127) | heft_grid_signs(pair >> 25) << 8,
                       iq2_scale(scale, (uint32_t)b[SCALES + k / 2] >> k % 2 * 4));
    }
    heft_end_coded(&c, PAIRS);
}

static inline void decode_iq2_s(float *restrict out, const uint8_t *restrict b)
{
    enum { LOW = 2, SIGNS = 34, HIGH = 66, SCALES = 74 };
    float scale = half_at(b) * 0.25f;
    heft_coded c;
    c.out = out;
    for (uint32_t k = 0; k < PAIRS; k++) {
        const uint8_t *low = b + LOW + 2 * k, *signs = b + SIGNS + 2 * k;
        uint32_t high = (uint32_t)b[HIGH + k / 2] >> k % 2 * 4;
        uint32_t first = low[0] | (high & 3) << 8, second = low[1] | (high >> 2 & 3) << 8;
        uint32_t codes[2] = { heft_grid_at(heft_grid_iq2_s, HEFT_GRID_IQ2_S, first),
                              heft_grid_at(heft_grid_iq2_s, HEFT_GRID_IQ2_S, second) };
        heft_put_coded(&c, k, &iq2_numbers, codes, signs[0] | (uint32_t)signs[1] << 8,
                       iq2_scale(scale, (uint32_t)b[SCALES + k / 2] >> k % 2 * 4));
    }
    heft_end_coded(&c, PAIRS);
}

/* ---- iq3 ---- */

/* Return eight codes: those of two entries of four. */
static inline uint32_t two_entries(const uint8_t *grid, uint32_t entries, uint32_t first,
                                   uint32_t second)
{
    return heft_grid_at(grid, entries, first) | heft_grid_at(grid, entries, second) << 12;
}

static inline void decode_iq3_xxs(float *restrict out, const uint8_t *restrict b)
{
    enum { INDICES = 2, WORDS = 66 };
    float scale = half_at(b) * 0.5f;
    heft_coded c;
    c.out = out;
    for (uint32_t k = 0; k < PAIRS; k++) {
        const uint8_t *p = b + INDICES + 4 * k;
        uint32_t word = heft_le32(b + WORDS + k / 2 * 4), signs = word >> k % 2 * 14;
        uint32_t codes[2] = { two_entries(heft_grid_iq3_xxs, HEFT_GRID_IQ3_XXS, p[0], p[1]),
                              two_entries(heft_grid_iq3_xxs, HEFT_GRID_IQ3_XXS, p[2], p[3]) };
        heft_put_coded(&c, k, &iq3_xxs_numbers, codes,
                       heft_grid_signs(signs & 127) | heft_grid_signs(signs >> 7 & 127) << 8,
                       scale * (0.5f + (float)(int32_t)(word >> 28)));
    }
    heft_end_coded(&c, PAIRS);
}

static inline void decode_iq3_s(float *restrict out, const uint8_t *restrict b)
{
    enum { LOW = 2, HIGH = 66, SIGNS = 74, SCALES = 106 };
    float scale = half_at(b);
    heft_coded c;
    c.out = out;
    for (uint32_t k = 0; k < PAIRS; k++) {
        const uint8_t *low = b + LOW + 4 * k, *signs = b + SIGNS + 2 * k;
        uint32_t high = (uint32_t)b[HIGH + k / 2] >> k % 2 * 4, codes[2];
        for (uint32_t i = 0; i < 2; i++, high >>= 2)
            codes[i] = two_entries(heft_grid_iq3_s, HEFT_GRID_IQ3_S, low[2 * i] | (high & 1) << 8,
                                   low[2 * i + 1] | (high >> 1 & 1) << 8);
        int32_t code = b[SCALES + k / 4] >> k / 2 % 2 * 4 & 15;
        heft_put_coded(&c, k, &iq3_s_numbers, codes, signs[0] | (uint32_t)signs[1] << 8,
                       scale * (float)(1 + 2 * code));
    }
    heft_end_coded(&c, PAIRS);
}

/* ---- iq1 ---- */

/* Decode two entries of numbers to which an eighth is added or, if a bit of `minus` is set,
 * subtracted.  eighth: an eighth of the scale. */
static inline void put_iq1(heft_coded *c, uint32_t k, uint32_t first, uint32_t second,
                           uint32_t minus, float eighth)
{
    enum { ALL_TWO = 0xAAAA };
    uint32_t codes[2] = { heft_grid_at(heft_grid_iq1, HEFT_GRID_IQ1, first),
                          heft_grid_at(heft_grid_iq1, HEFT_GRID_IQ1, second) };
    /* 8 * (code - 1) - 1 is the negative of 8 * ((2 - code) - 1) + 1. */
    for (uint32_t i = 0; i < 2; i++)
        codes[i] = minus >> i & 1 ? ALL_TWO - codes[i] : codes[i];
    heft_put_coded(c, k, &iq1_numbers, codes, (minus & 1) * 0xFF | (minus >> 1 & 1) * 0xFF00,
                   eighth);
}

static inline void decode_iq1_s(float *restrict out, const uint8_t *restrict b)
{
    enum { LOW = 2, WORDS = 34 };
    float eighth = half_at(b) * 0.125f;
    heft_coded c;
    c.out = out;
    for (uint32_t k = 0; k < PAIRS; k++) {
        const uint8_t *p = b + WORDS + k / 2 * 2, *low = b + LOW + 2 * k;
        uint32_t word = p[0] | (uint32_t)p[1] << 8, high = word >> k % 2 * 6;
        put_iq1(&c, k, low[0] | (high & 7) << 8, low[1] | (high >> 3 & 7) << 8, (word >> 15) * 3,
                eighth * (float)(int32_t)(2 * (word >> 12 & 7) + 1));
    }
    heft_end_coded(&c, PAIRS);
}

/* The scale of the block has its bits in four words. */
static inline void decode_iq1_m(float *restrict out, const uint8_t *restrict b)
{
    enum { HIGH = 32, WORDS = 48 };
    uint64_t words = heft_le64(b + WORDS);
    uint8_t half[2] = { (uint8_t)((words >> 12 & 15) | (words >> 28 & 15) << 4),
                        (uint8_t)((words >> 44 & 15) | (words >> 60) << 4) };
    if (!is_finite(half)) {
        heft_decode_block(out, HEFT_IQ1_M, b);
        return;
    }
    float eighth = half_at(half) * 0.125f;
    heft_coded c;
    c.out = out;
    for (uint32_t k = 0; k < PAIRS; k++) {
        uint32_t high = b[HIGH + k], code = (uint32_t)(words >> (k / 4 * 16 + k % 4 * 3)) & 7;
        put_iq1(&c, k, b[2 * k] | (high & 7) << 8, b[2 * k + 1] | (high >> 4 & 7) << 8,
                (high >> 3 & 1) | (high >> 7) << 1, eighth * (float)(int32_t)(2 * code + 1));
    }
    heft_end_coded(&c, PAIRS);
}

#endif
