/* encode_loops.h - loops of encoders that compilers vectorise, for the files that include
 * fit_lanes.h. */
#ifndef HEFT_ENCODE_LOOPS_H
#define HEFT_ENCODE_LOOPS_H
#include "model/block_encode.h"
#include "model/encode_fp4.h"
#include "model/encode_rounding.h"
#include "simd/fit_lanes.h"
#include "simd/instructions.h"

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

static inline void put_scale(uint8_t *p, float v)
{
    uint16_t half = heft_f16_nearest(v);
    p[0] = (uint8_t)half;
    p[1] = (uint8_t)(half >> 8);
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
        put_scale(out, scale);
        /* Adding the number before a half rounds to nearest, and halves away from zero. */
        for (uint32_t k = 0; k < ELEMENTS32; k++) {
            float v = x[i + k] * inverse;
            float half = heft_f32_of((heft_f32_bits(v) & 0x80000000) | 0x3EFFFFFF);
            out[2 + k] = (uint8_t)(int8_t)(int32_t)(v + half);
        }
    }
    return i;
}

enum { BLOCK_LANES = ELEMENTS32 / LANES };

/* Find the least and the greatest element, with any sign if they are zero; false if one is NaN or
 * infinite. */
static inline bool range_of_block(float *min, float *max, const float *x)
{
    lanes least, most, v, strange;
    memcpy(&least, x, sizeof least);
    most = least;
    strange = least - least;
    for (uint32_t i = LANES; i < ELEMENTS32; i += LANES) {
        memcpy(&v, x + i, sizeof v);
        least = least_of(v, least);
        most = most_of(v, most);
        strange += v - v;
    }
    *min = least_lane(least);
    *max = most_lane(most);
    return !not_below(strange, 1);
}

static inline lane_ints code_lanes(lanes v, int32_t top)
{
    return __builtin_convertvector(least_of(v, splat((float)top)), lane_ints);
}

/* Write the codes of a block: the whole parts of v, which are not negative, and at most `top`. */
static inline void put_codes(uint8_t *restrict b, block32 l, const lanes v[BLOCK_LANES],
                             int32_t top)
{
    enum { HALF = BLOCK_LANES / 2 };
    uint32_t high = 0;
    for (uint32_t k = 0; k < HALF; k++) {
        lane_ints both = (code_lanes(v[k], top) & 15) | code_lanes(v[k + HALF], top) << 4;
        lane_bytes bytes = __builtin_convertvector(both, lane_bytes);
        memcpy(b + l.codes_at + k * LANES, &bytes, sizeof bytes);
    }
    for (uint32_t k = 0; l.high_at && k < BLOCK_LANES; k++)
        high |= not_below(v[k], 16) << k * LANES;
    for (uint32_t k = 0; l.high_at && k < 4; k++)
        b[l.high_at + k] = (uint8_t)(high >> 8 * k);
}

/* Encode blocks of q4_0 or q5_0. */
static inline size_t symmetric_blocks(uint8_t *restrict out, heft_dtype to, block32 l,
                                      const float *restrict x, size_t n)
{
    size_t i = 0;
    for (; i < n; i += ELEMENTS32, out += l.codes_at + HALF32) {
        lanes v[BLOCK_LANES];
        float min, max;
        bool is_finite = range_of_block(&min, &max, x + i);
        float extreme = max > -min ? max : min == 0 ? 0 : min;
        /* The first of two extremes decides. */
        if (!is_finite || !is_usual(heft_f32_bits(heft_magnitude(extreme))) ||
            (max == -min && max != 0)) {
            heft_row_encode_with(&heft_portable_fits, out, to, x + i, ELEMENTS32, NULL);
            continue;
        }
        float scale = extreme / -(float)l.zero_code, inverse = heft_reciprocal(scale);
        put_scale(out, scale);
        memcpy(v, x + i, sizeof v);
        for (uint32_t k = 0; k < BLOCK_LANES; k++)
            v[k] = v[k] * inverse + ((float)l.zero_code + 0.5f);
        put_codes(out, l, v, 2 * l.zero_code - 1);
    }
    return i;
}

/* Encode blocks of q4_1 or q5_1.  The portable form does blocks where the minimum is 0, whose sign
 * is the one of the first zero. */
static inline size_t affine_blocks(uint8_t *restrict out, heft_dtype to, block32 l,
                                   const float *restrict x, size_t n)
{
    const int32_t top = l.high_at ? 31 : 15;
    size_t i = 0;
    for (; i < n; i += ELEMENTS32, out += l.codes_at + HALF32) {
        lanes v[BLOCK_LANES];
        float min, max;
        bool is_finite = range_of_block(&min, &max, x + i);
        float greatest = max > -min ? max : -min;
        if (!is_finite || min == 0 || !is_usual(heft_f32_bits(greatest)) ||
            !is_usual(heft_f32_bits(max - min))) {
            heft_row_encode_with(&heft_portable_fits, out, to, x + i, ELEMENTS32, NULL);
            continue;
        }
        float scale = (max - min) / (float)top, inverse = heft_reciprocal(scale);
        put_scale(out, scale);
        put_scale(out + l.minimum_at, min);
        memcpy(v, x + i, sizeof v);
        for (uint32_t k = 0; k < BLOCK_LANES; k++)
            v[k] = (v[k] - min) * inverse + 0.5f;
        put_codes(out, l, v, top);
    }
    return i;
}

/* ---- numbers of f4_e2m1 ---- */

/* Find the greatest magnitude of n elements; false if one is NaN or infinite. */
static inline bool greatest_of(float *greatest, const float *x, uint32_t n)
{
    lanes most = splat(0), strange = splat(0), v;
    for (uint32_t i = 0; i < n; i += LANES) {
        memcpy(&v, x + i, sizeof v);
        most = most_of(magnitude(v), most);
        strange += v - v;
    }
    *greatest = most_lane(most);
    return !not_below(strange, 1);
}

/* Write the codes of n elements.  A code counts the middles of neighbouring numbers that are below
 * the magnitude, which are exact, as is the distance of an element to its two neighbours: this is
 * the nearest number and, of two, the lower code.  Beyond the greatest number the distances must
 * differ after they are rounded, so that elements must be below 2^20 * scale. */
static inline void put_fp4_codes(uint8_t *restrict out, const float *restrict x, uint32_t n,
                                 float scale)
{
    static const float middles[] = { 0.5F, 1.5F, 2.5F, 3.5F, 5, 7, 10 };
    uint8_t codes[ELEMENTS32];
    for (uint32_t i = 0; i < n; i += LANES) {
        lanes v, below = splat(0);
        memcpy(&v, x + i, sizeof v);
        for (uint32_t k = 0; k < sizeof middles / sizeof *middles; k++)
            below += pick(is_less(splat(middles[k] * scale), magnitude(v)), splat(1), splat(0));
        lane_ints code = __builtin_convertvector(below, lane_ints);
        lane_ints sign = (lane_ints)pick(is_less(splat(0), below), v, splat(0));
        lane_bytes bytes = __builtin_convertvector(code | (sign >> 28 & 8), lane_bytes);
        memcpy(codes + i, &bytes, sizeof bytes);
    }
    for (uint32_t i = 0; i < n / 2; i += 8)
        heft_put_le64(out + i, heft_le64(codes + i) | heft_le64(codes + n / 2 + i) << 4);
}

static size_t mxfp4_blocks(uint8_t *restrict out, const float *restrict x, size_t n)
{
    enum { BYTES = 17 };
    size_t i = 0;
    for (; i < n; i += ELEMENTS32, out += BYTES) {
        float greatest;
        if (!greatest_of(&greatest, x + i, ELEMENTS32)) {
            heft_row_encode_with(&heft_portable_fits, out, HEFT_MXFP4, x + i, ELEMENTS32, NULL);
            continue;
        }
        out[0] = mxfp4_code(greatest);
        put_fp4_codes(out + 1, x + i, ELEMENTS32, mxfp4_scale(out[0]));
    }
    return i;
}

static size_t nvfp4_blocks(uint8_t *restrict out, const float *restrict x, size_t n)
{
    enum { SCALES = 4, LENGTH = 16, ELEMENTS = SCALES * LENGTH, BYTES = 36, MOST = 1 << 20 };
    const float infinity = heft_f32_of(0x7F800000);
    size_t i = 0;
    for (; i < n; i += ELEMENTS, out += BYTES) {
        bool is_usual = true;
        for (uint32_t g = 0; g < SCALES && is_usual; g++) {
            const float *group = x + i + LENGTH * g;
            float greatest, scale;
            is_usual = greatest_of(&greatest, group, LENGTH);
            out[g] = is_usual ? nvfp4_code(greatest) : 0;
            scale = nvfp4_scale(out[g]);
            is_usual = is_usual && (scale == 0 || greatest < MOST * scale);
            /* All numbers are 0 if the scale is: their code is 0, as below the least middle. */
            put_fp4_codes(out + SCALES + LENGTH / 2 * g, group, LENGTH,
                          scale > 0 ? scale : infinity);
        }
        if (!is_usual)
            heft_row_encode_with(&heft_portable_fits, out, HEFT_NVFP4, x + i, ELEMENTS, NULL);
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
    case HEFT_MXFP4:
        return mxfp4_blocks(out, x, n);
    case HEFT_NVFP4:
        return nvfp4_blocks(out, x, n);
    default:
        return 0;
    }
}

#define HEFT_FITS                                                          \
    {                                                                      \
        affine, symmetric, refined, numbers, weigh, codes_of, range_blocks \
    }

#endif
