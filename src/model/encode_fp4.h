/* encode_fp4.h - scales of the types whose codes stand for numbers of f4_e2m1. */
#ifndef HEFT_ENCODE_FP4_H
#define HEFT_ENCODE_FP4_H
#include "model/encode_rounding.h"

/* Return the integral part of the logarithm of base 2 as f32 has it: a number that is less than the
 * next power by so little that the logarithm is rounded to an integer counts as that power. */
static inline int32_t rounded_log2(float v)
{
    enum { MANTISSA_BITS = 23, HIDDEN = 1 << MANTISSA_BITS, BIAS = 127, MOST_APART = 128 };
    uint32_t bits = heft_f32_bits(v), mantissa = bits & (HIDDEN - 1);
    int32_t power = (int32_t)(bits >> MANTISSA_BITS) - BIAS;
    if (power == -BIAS) {
        power++;
        for (; !(mantissa & HIDDEN); mantissa <<= 1)
            power--;
        mantissa &= HIDDEN - 1;
    }

    /* The distance to the integer n above is log2(e) times the units that are missing, in units of
     * 2^-24; numbers below n are 2^-23 times a power of two apart, of which half is rounded up. */
    uint32_t missing = HIDDEN - mantissa, apart = 1;
    if (missing >= MOST_APART)
        return power;
    uint32_t next = (uint32_t)(power < -1 ? -power - 1 : power < 0 ? 0 : power);
    while (next >= 2 * apart)
        apart *= 2;
    return next && 14427 * (uint64_t)missing < 10000 * (uint64_t)apart ? power + 1 : power;
}

/* Return the code of the scale of mxfp4 for the greatest magnitude of a block. */
static inline uint8_t mxfp4_code(float greatest)
{
    enum { TOP_POWER = 2, BIAS = 127 };
    bool has_scale = greatest > 0 && greatest - greatest == 0;
    return (uint8_t)(has_scale ? rounded_log2(greatest) - TOP_POWER + BIAS : 0);
}

/* Return the code of the scale of nvfp4 for the greatest magnitude; halves are rounded up. */
static inline uint8_t nvfp4_code(float greatest)
{
    enum { TOP = 0x7E, TOP_EXPONENT = 0x78, BIAS = 7 };
    const float most = 448, units = 512, v = greatest / 6;
    if (!(v > 0))
        return 0;
    uint32_t bits = heft_f32_bits(v < most ? v : most);
    int32_t exponent = (int32_t)(bits >> 23) - 127 + BIAS;
    if (exponent <= 0) {
        int32_t code = heft_truncated(v * units + 0.5f);
        return (uint8_t)(code < BIAS ? code : BIAS);
    }
    /* A carry of the mantissa goes to the exponent.  ggml has no scales from 256 to 416. */
    uint32_t code = ((uint32_t)exponent << 3 | (bits >> 20 & 7)) + (bits >> 19 & 1);
    return (uint8_t)(code < TOP_EXPONENT ? code : TOP);
}

#endif
