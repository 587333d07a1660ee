/* encode_rounding.h - the roundings that encoders of blocks have in common, free of branches.
 *
 * Numbers that do not fit in an integer, and NaN, have a defined result: the one of x86-64, where
 * ggml computes what C leaves undefined. */
#ifndef HEFT_ENCODE_ROUNDING_H
#define HEFT_ENCODE_ROUNDING_H
#include <stdint.h>

#include "model/float.h"

/* Round to nearest, ties to even.  Adding 1.5 * 2^23 leaves the integer in the mantissa; only 22
 * bits and the sign are right, and numbers beyond give some integer of as many bits.  NaN: 0. */
static inline int32_t heft_nearest_int(float v)
{
    uint32_t bits = heft_f32_bits(v + 12582912.0f);
    bits = heft_pick(heft_f32_is_nan(bits), 0x400000, bits);
    return (int32_t)(bits & 0x7FFFFF) - 0x400000;
}

/* Round towards zero; INT32_MIN if the integer does not fit, or v is NaN. */
static inline int32_t heft_truncated(float v)
{
    return v > -2147483648.0f && v < 2147483648.0f ? (int32_t)v : INT32_MIN;
}

/* Round to nearest, ties away from zero; INT32_MIN as above. */
static inline int32_t heft_rounded(float v)
{
    int32_t whole = heft_truncated(v);
    float rest = v - (float)whole; /* exact; a number of 2^23 and more has none */
    return whole == INT32_MIN ? whole : whole + (rest >= 0.5f) - (rest <= -0.5f);
}

static inline int32_t heft_clamp(int32_t v, int32_t least, int32_t most)
{
    return v < least ? least : v > most ? most : v;
}

static inline float heft_magnitude(float v)
{
    return heft_f32_of(heft_f32_bits(v) & 0x7FFFFFFF);
}

/* Return 1 / v; 0 if v is 0. */
static inline float heft_reciprocal(float v)
{
    return v != 0 ? 1 / v : 0;
}

/* Write an f16.  All NaNs are the same: which sign and payload an operation gives depends on the
 * processor. */
static inline void heft_put_half(uint8_t *p, float v)
{
    uint32_t bits = heft_f32_bits(v);
    uint16_t half = heft_f32_is_nan(bits) ? 0x7E00 : heft_f32_to_f16(bits);
    p[0] = (uint8_t)half;
    p[1] = (uint8_t)(half >> 8);
}

/* Return the first of the elements of the greatest magnitude; 0 if there is none but zeros and NaN.
 */
static inline float heft_extreme(const float *x, uint32_t n)
{
    float most = 0, extreme = 0;
    for (uint32_t i = 0; i < n; i++)
        if (heft_magnitude(x[i]) > most) {
            most = heft_magnitude(x[i]);
            extreme = x[i];
        }
    return extreme;
}

/* ---- codes of few bits in blocks of 256 elements ---- */

enum { HEFT_SUPER_BLOCK = 256 };

/* Write bits `shift` and `shift` + 1 of all codes: 64 bytes. */
static inline void heft_put_two_bits(uint8_t *restrict out, const uint8_t *restrict codes,
                                     uint32_t shift)
{
    const uint64_t low = 0x0303030303030303;
    for (uint32_t at = 0; at < HEFT_SUPER_BLOCK; at += 128, out += 32)
        for (uint32_t i = 0; i < 32; i += 8) {
            const uint8_t *c = codes + at + i;
            uint64_t eight = 0; /* bytes */
            for (uint32_t k = 0; k < 4; k++)
                eight |= (heft_le64(c + 32 * k) >> shift & low) << 2 * k;
            heft_put_le64(out + i, eight);
        }
}

/* Write the lower 4 bits of all codes: 128 bytes, where the lower halves of `run` bytes have the
 * first elements. */
static inline void heft_put_four_bits(uint8_t *restrict out, const uint8_t *restrict codes,
                                      uint32_t run)
{
    for (uint32_t at = 0; at < HEFT_SUPER_BLOCK; at += 2 * run, out += run)
        for (uint32_t i = 0; i < run; i++)
            out[i] = (uint8_t)((codes[at + i] & 15) | codes[at + run + i] << 4);
}

/* Write bit `shift` of all codes: 32 bytes, where byte i has the elements i, 32 + i and so on. */
static inline void heft_put_one_bit(uint8_t *restrict out, const uint8_t *restrict codes,
                                    uint32_t shift)
{
    const uint64_t low = 0x0101010101010101;
    for (uint32_t i = 0; i < 32; i += 8) {
        uint64_t eight = 0; /* bytes */
        for (uint32_t k = 0; k < 8; k++)
            eight |= (heft_le64(codes + 32 * k + i) >> shift & low) << k;
        heft_put_le64(out + i, eight);
    }
}

#endif
