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

/* Decode a digit of base 3 of `count` bytes; `power`: 3 to the number of the digit. */
static inline void decode_digits(float *restrict out, const uint8_t *restrict p, uint32_t count,
                                 uint32_t power, float scale)
{
    for (uint32_t i = 0; i < count; i++) {
        uint8_t fraction = (uint8_t)(p[i] * power);
        out[i] = (float)((int32_t)(fraction * 3u >> 8) - 1) * scale;
    }
}

static inline void decode_tq1_0(float *restrict out, const uint8_t *restrict b)
{
    enum { SCALE = 52 };
    static const uint8_t powers[] = { 1, 3, 9, 27, 81 };
    float scale = half_at(b + SCALE);
    for (uint32_t n = 0; n < 5; n++) {
        decode_digits(out + 32 * n, b, 32, powers[n], scale);
        decode_digits(out + 160 + 16 * n, b + 32, 16, powers[n], scale);
    }
    for (uint32_t n = 0; n < 4; n++)
        decode_digits(out + 240 + 4 * n, b + 48, 4, powers[n], scale);
}

#endif
