/* float.h - floating-point numbers as bits, and conversions for tight loops.
 *
 * All functions are free of branches and calls.  A NaN keeps the sign and the leading bits of the
 * payload; if these bits are zero, which would mean infinity, the quiet bit is set.
 */
#ifndef HEFT_FLOAT_H
#define HEFT_FLOAT_H
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

static inline uint32_t heft_f32_bits(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static inline float heft_f32_of(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Turn little-endian numbers into those of the machine, in place. */
static inline void heft_f32_from_little(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = heft_f32_of(heft_le32((const uint8_t *)&values[i]));
}

static inline uint64_t heft_f64_bits(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static inline double heft_f64_of(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Return c ? a : b; c must be 0 or 1.  Compilers keep loops with this expression free of jumps, for
 * integers and floating-point numbers. */
static inline uint32_t heft_pick(uint32_t c, uint32_t a, uint32_t b)
{
    return b ^ ((a ^ b) & (0 - c));
}

static inline uint64_t heft_pick64(uint64_t c, uint64_t a, uint64_t b)
{
    return b ^ ((a ^ b) & (0 - c));
}

static inline uint32_t heft_f32_is_nan(uint32_t f)
{
    return (int32_t)(f & 0x7FFFFFFF) > 0x7F800000;
}

/* Round to nearest, ties to even; f must not be NaN. */
static inline uint16_t heft_f32_round_to_bf16(uint32_t f)
{
    return (uint16_t)((f + 0x7FFF + (f >> 16 & 1)) >> 16);
}

static inline uint16_t heft_f32_to_bf16(uint32_t f)
{
    uint16_t nan = (uint16_t)((f | (uint32_t) !(f & 0x7F0000) << 22) >> 16);
    return (uint16_t)heft_pick(heft_f32_is_nan(f), nan, heft_f32_round_to_bf16(f));
}

static inline uint16_t heft_f32_to_f16(uint32_t f)
{
    enum { MIN_NORMAL = 0x38800000, OVER = 0x47800000 /* 65536 */, HALF = 0x3F000000 };
    uint32_t magnitude = f & 0x7FFFFFFF, capped = heft_pick(magnitude < OVER, magnitude, OVER);
    uint32_t normal = ((capped + 0xFFF + (capped >> 13 & 1)) >> 13) - (112u << 10);
    /* A subnormal f16 has the unit in the last place of the f32 0.5: adding 0.5 rounds. */
    uint32_t subnormal = heft_f32_bits(heft_f32_of(capped) + 0.5f) - HALF;
    uint32_t payload = magnitude >> 13 & 0x3FF;
    uint32_t nan = 0x7C00 | payload | (uint32_t)!payload << 9;
    uint32_t number = heft_pick(magnitude < MIN_NORMAL, subnormal, normal);
    return (uint16_t)((f >> 16 & 0x8000) | heft_pick(magnitude > 0x7F800000, nan, number));
}

static inline uint32_t heft_f16_to_f32(uint16_t h)
{
    enum { REBIAS = 112 << 23, MIN_NORMAL = 1 << 23 };
    uint32_t magnitude = h & 0x7FFFu, shifted = magnitude << 13;
    /* Read a subnormal with the least exponent, then subtract the hidden bit. */
    uint32_t subnormal = heft_f32_bits(heft_f32_of(shifted + REBIAS + MIN_NORMAL) -
                                       heft_f32_of(REBIAS + MIN_NORMAL));
    uint32_t wide = heft_pick(shifted < MIN_NORMAL, subnormal, shifted + REBIAS);
    wide = heft_pick(magnitude >= 0x7C00, 0x7F800000 | (shifted & (MIN_NORMAL - 1)), wide);
    return wide | (uint32_t)(h & 0x8000) << 16;
}

/* Read an f16 as it is stored, little-endian. */
static inline float heft_get_half(const uint8_t *p)
{
    return heft_f32_of(heft_f16_to_f32((uint16_t)(p[0] | p[1] << 8)));
}

static inline uint64_t heft_f32_to_f64(uint32_t f)
{
    uint32_t magnitude = f & 0x7FFFFFFF;
    uint64_t nan = (uint64_t)(f & 0x80000000) << 32 | 0x7FF0000000000000 |
                   (uint64_t)(f & 0x7FFFFF) << 29;
    return heft_pick64(magnitude > 0x7F800000, nan, heft_f64_bits((double)heft_f32_of(f)));
}

static inline uint32_t heft_f64_to_f32(uint64_t d)
{
    uint64_t magnitude = d & 0x7FFFFFFFFFFFFFFF;
    uint32_t payload = (uint32_t)(d >> 29) & 0x7FFFFF;
    uint32_t nan = (uint32_t)(d >> 32 & 0x80000000) | 0x7F800000 | payload |
                   (uint32_t)!payload << 22;
    return heft_pick(magnitude > 0x7FF0000000000000, nan, heft_f32_bits((float)heft_f64_of(d)));
}

/* ---- the square root, correctly rounded, without a C library ---- */

/* Return the f32 nearest to the square root, as IEEE 754 requires; NaN for numbers below 0. */
float heft_square_root(float v);

#endif
