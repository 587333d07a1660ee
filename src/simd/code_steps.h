/* code_steps.h - decoding of block types whose codes of 1, 2 or 4 bits stand for numbers.
 * model/blocks.c is the specification and describes the layouts. */
#ifndef HEFT_CODE_STEPS_H
#define HEFT_CODE_STEPS_H
#include "simd/block_steps.h"

/* ---- codes of 4 bits that stand for numbers ---- */

static inline void decode_iq4_nl(float *restrict out, const uint8_t *restrict b)
{
    heft_put_halves(out, b + 2, HALF32, iq4_numbers, half_at(b));
}

static inline void decode_iq4_xs(float *restrict out, const uint8_t *restrict b)
{
    enum { HIGH = 2, LOW = 4, CODES = 8, SUB_BLOCKS = BLOCK / ELEMENTS32 };
    float scale = half_at(b);
    for (uint32_t g = 0; g < SUB_BLOCKS; g++) {
        int32_t low = b[LOW + g / 2] >> g % 2 * 4 & 15, high = b[HIGH + g / 4] >> g % 4 * 2 & 3;
        heft_put_halves(out + ELEMENTS32 * g, b + CODES + HALF32 * g, HALF32, iq4_numbers,
                        scale * (float)((low | high << 4) - 32));
    }
}

static inline void decode_mxfp4(float *restrict out, const uint8_t *restrict b)
{
    heft_put_halves(out, b + 1, HALF32, fp4_numbers, mxfp4_scale(b[0]));
}

static inline void decode_nvfp4(float *restrict out, const uint8_t *restrict b)
{
    enum { SCALES = 4, ELEMENTS = 16 };
    for (uint32_t k = 0; k < SCALES; k++)
        heft_put_halves(out + ELEMENTS * k, b + SCALES + ELEMENTS / 2 * k, ELEMENTS / 2,
                        fp4_numbers, nvfp4_scale(b[k]));
}

/* ---- codes of 1 and 2 bits ---- */

static inline void decode_q1_0(float *restrict out, const uint8_t *restrict b)
{
    enum { BITS = 2, BYTES_OF_BITS = 16 };
    uint32_t minus = heft_f32_bits(half_at(b)) ^ 0x80000000u;
    for (uint32_t k = 0; k < BYTES_OF_BITS; k++)
        for (uint32_t i = 0; i < 8; i++)
            out[8 * k + i] = heft_f32_of(minus ^ (b[BITS + k] & 1u << i) << (31 - i));
}

/* Codes of 2 bits, of which 1 means 0. */
static const heft_code_numbers q2_0_numbers = {
    { HEFT_FOUR_TIMES(-1, 0, 1, 2) }, .bits = 2, .base = 0x7F, .factor = 1, .flip = 0x80
};

static inline void decode_q2_0(float *restrict out, const uint8_t *restrict b)
{
    enum { CODES = 2, PAIRS_OF_EIGHT = 4 };
    float scale = half_at(b);
    heft_coded c;
    c.out = out;
    for (uint32_t k = 0; k < PAIRS_OF_EIGHT; k++) {
        uint32_t word = heft_le32(b + CODES + 4 * k), codes[2] = { word & 0xFFFF, word >> 16 };
        heft_put_coded(&c, k, &q2_0_numbers, codes, 0, scale);
    }
    heft_end_coded(&c, PAIRS_OF_EIGHT);
}

static inline void decode_tq2_0(float *restrict out, const uint8_t *restrict b)
{
    enum { SCALE = 64, RUN = 32 };
    float scale = half_at(b + SCALE);
    for (uint32_t run = 0; run < BLOCK / RUN; run++, out += RUN) {
        const uint8_t *codes = b + run / 4 * RUN;
        uint32_t shift = run % 4 * 2;
        for (uint32_t k = 0; k < RUN; k++)
            out[k] = (float)((codes[k] >> shift & 3) - 1) * scale;
    }
}

/* Return digit n of base 3 of a byte, less 1; `power`: 3 to the power of n. */
static inline int8_t digit_of(uint8_t byte, uint8_t power)
{
    uint8_t fraction = (uint8_t)(byte * power);
    return (int8_t)((fraction * 3u >> 8) - 1);
}

static inline void decode_tq1_0(float *restrict out, const uint8_t *restrict b)
{
    enum { FIVE_DIGITS = 48, SCALE = 52, RUN = 32, HALF_RUN = 160, LAST = 240 };
    static const uint8_t powers[] = { 1, 3, 9, 27, 81 };
    static const uint8_t last_powers[16] = { 1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27 };
    float scale = half_at(b + SCALE);
    int8_t digits[16];
    for (uint32_t n = 0; n < 5; n++)
        for (uint32_t at = 0; at < FIVE_DIGITS; at += 16) {
#pragma GCC unroll 1
            for (uint32_t i = 0; i < 16; i++)
                digits[i] = digit_of(b[at + i], powers[n]);
            heft_put_scaled(out + (at < RUN ? RUN * n + at : HALF_RUN + 16 * n), digits, scale);
        }
    uint8_t last[16];
    uint64_t word = heft_le32(b + FIVE_DIGITS);
    heft_put_le64(last, word | word << 32);
    heft_put_le64(last + 8, word | word << 32);
#pragma GCC unroll 1
    for (uint32_t i = 0; i < 16; i++)
        digits[i] = digit_of(last[i], last_powers[i]);
    heft_put_scaled(out + LAST, digits, scale);
}

#endif
