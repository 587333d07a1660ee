/* encode_loops.h - loops of encoders that compilers vectorise, for the files that include
 * fit_lanes.h. */
#ifndef HEFT_ENCODE_LOOPS_H
#define HEFT_ENCODE_LOOPS_H
#include "model/block_encode.h"
#include "model/encode_rounding.h"
#include "simd/fit_lanes.h"

static void weigh(float *restrict weights, const float *restrict x,
                  const float *restrict importance, size_t n, float variance)
{
    for (size_t i = 0; i < n; i++)
        weights[i] = importance[i] * __builtin_sqrtf(variance + x[i] * x[i]);
}

/* Codes are integers of 32 bits first: compilers would otherwise make loops of as many elements as
 * a vector has bytes, more than a group has. */
static void codes_of(uint8_t *restrict codes, const float *restrict x, size_t n, float minimum,
                     float scale, int32_t least, int32_t top)
{
    enum { STEP = 16 };
    for (size_t i = 0; i < n; i += STEP) {
        int32_t c[STEP];
        for (size_t k = 0; k < STEP; k++)
            c[k] = heft_clamp(heft_nearest_int((x[i + k] + minimum) / scale), least, top) - least;
        for (size_t k = 0; k < STEP; k++)
            codes[i + k] = (uint8_t)c[k];
    }
}

/* ---- blocks whose range decides ---- */

/* Return the bits of the greatest magnitude; NaN is greater than infinity. */
static inline uint32_t greatest_bits(const float *restrict x)
{
    int32_t most = 0;
    for (uint32_t i = 0; i < ELEMENTS32; i++) {
        int32_t bits = (int32_t)(heft_f32_bits(x[i]) & 0x7FFFFFFF);
        most = bits > most ? bits : most;
    }
    return (uint32_t)most;
}

/* True if the scale of a block is 0, or neither it nor its reciprocal is subnormal or infinite. */
static inline bool is_usual(uint32_t greatest)
{
    enum { LEAST = 0x08000000, MOST = 0x70000000 };
    return greatest == 0 || (greatest > LEAST && greatest < MOST);
}

static size_t q8_0_blocks(uint8_t *restrict out, const float *restrict x, size_t n)
{
    enum { BYTES = 34 };
    size_t i = 0;
    for (; i < n; i += ELEMENTS32, out += BYTES) {
        uint32_t greatest = greatest_bits(x + i);
        if (!is_usual(greatest)) {
            heft_row_encode_with(&heft_portable_fits, out, HEFT_Q8_0, x + i, ELEMENTS32, NULL);
            continue;
        }
        float scale = heft_f32_of(greatest) / 127, inverse = heft_reciprocal(scale);
        heft_put_half(out, scale);
        /* Adding the number before a half rounds to nearest, and halves away from zero. */
        for (uint32_t k = 0; k < ELEMENTS32; k++) {
            float v = x[i + k] * inverse;
            float half = heft_f32_of((heft_f32_bits(v) & 0x80000000) | 0x3EFFFFFF);
            out[2 + k] = (uint8_t)(int8_t)(int32_t)(v + half);
        }
    }
    return i;
}

static inline void put_codes(uint8_t *restrict b, block32 l, const uint32_t codes[ELEMENTS32])
{
    uint32_t high = 0;
    for (uint32_t k = 0; k < HALF32; k++)
        b[l.codes_at + k] = (uint8_t)((codes[k] & 15) | codes[k + HALF32] << 4);
    for (uint32_t k = 0; l.high_at && k < ELEMENTS32; k++)
        high |= (codes[k] >> 4) << k;
    for (uint32_t k = 0; l.high_at && k < 4; k++)
        b[l.high_at + k] = (uint8_t)(high >> 8 * k);
}

/* Encode blocks of q4_0 or q5_0. */
static inline size_t symmetric_blocks(uint8_t *restrict out, heft_dtype to, block32 l,
                                      const float *restrict x, size_t n)
{
    const int32_t top = 2 * l.zero_code - 1;
    size_t i = 0;
    for (; i < n; i += ELEMENTS32, out += l.codes_at + HALF32) {
        uint32_t greatest = greatest_bits(x + i), plus = 0, minus = 0, codes[ELEMENTS32];
        for (uint32_t k = 0; k < ELEMENTS32; k++) {
            plus |= heft_f32_bits(x[i + k]) == greatest;
            minus |= heft_f32_bits(x[i + k]) == (greatest | 0x80000000);
        }
        /* The first of two extremes decides. */
        if (!is_usual(greatest) || (plus && minus)) {
            heft_row_encode_with(&heft_portable_fits, out, to, x + i, ELEMENTS32, NULL);
            continue;
        }
        float extreme = heft_f32_of(greatest ? greatest | minus << 31 : 0);
        float scale = extreme / -(float)l.zero_code, inverse = heft_reciprocal(scale);
        heft_put_half(out, scale);
        for (uint32_t k = 0; k < ELEMENTS32; k++) {
            int32_t code = (int32_t)(x[i + k] * inverse + ((float)l.zero_code + 0.5f));
            codes[k] = (uint32_t)(code < top ? code : top);
        }
        put_codes(out, l, codes);
    }
    return i;
}

static inline void range_of_block(float *min, float *max, const float *x)
{
    lanes least, most, v;
    memcpy(&least, x, sizeof least);
    most = least;
    for (uint32_t i = LANES; i < ELEMENTS32; i += LANES) {
        memcpy(&v, x + i, sizeof v);
        least = least_of(v, least);
        most = most_of(v, most);
    }
    *min = least[0];
    *max = most[0];
    for (uint32_t k = 1; k < LANES; k++) {
        *min = least[k] < *min ? least[k] : *min;
        *max = most[k] > *max ? most[k] : *max;
    }
}

/* Encode blocks of q4_1 or q5_1.  The portable form does blocks where the minimum is 0, whose sign
 * is the one of the first zero. */
static inline size_t affine_blocks(uint8_t *restrict out, heft_dtype to, block32 l,
                                   const float *restrict x, size_t n)
{
    const int32_t top = l.high_at ? 31 : 15;
    size_t i = 0;
    for (; i < n; i += ELEMENTS32, out += l.codes_at + HALF32) {
        uint32_t codes[ELEMENTS32];
        float min, max;
        range_of_block(&min, &max, x + i);
        if (min == 0 || !is_usual(greatest_bits(x + i)) || !is_usual(heft_f32_bits(max - min))) {
            heft_row_encode_with(&heft_portable_fits, out, to, x + i, ELEMENTS32, NULL);
            continue;
        }
        float scale = (max - min) / (float)top, inverse = heft_reciprocal(scale);
        heft_put_half(out, scale);
        heft_put_half(out + l.minimum_at, min);
        for (uint32_t k = 0; k < ELEMENTS32; k++) {
            int32_t code = (int32_t)((x[i + k] - min) * inverse + 0.5f);
            codes[k] = (uint32_t)(code < top ? code : top);
        }
        put_codes(out, l, codes);
    }
    return i;
}

static size_t range_blocks(uint8_t *out, heft_dtype to, const float *x, size_t n)
{
    switch (to) {
    case HEFT_Q8_0:
        return q8_0_blocks(out, x, n);
    case HEFT_Q4_0:
        return symmetric_blocks(out, to, q4_0, x, n);
    case HEFT_Q5_0:
        return symmetric_blocks(out, to, q5_0, x, n);
    case HEFT_Q4_1:
        return affine_blocks(out, to, q4_1, x, n);
    case HEFT_Q5_1:
        return affine_blocks(out, to, q5_1, x, n);
    default:
        return 0;
    }
}

#define HEFT_FITS                                                          \
    {                                                                      \
        affine, symmetric, refined, numbers, weigh, codes_of, range_blocks \
    }

#endif
