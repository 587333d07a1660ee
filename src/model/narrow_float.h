/* narrow_float.h - rounds f32 to a floating-point type of at most eight bits, without branches. */
#ifndef HEFT_NARROW_FLOAT_H
#define HEFT_NARROW_FLOAT_H
#include "model/dtype.h"
#include "model/float.h"

typedef struct heft_narrowing {
    uint32_t sign, top, down, rebias, to_sign, unit;
    uint32_t nan, payload, quiet, no_minus_zero, no_minus_nan;
} heft_narrowing;

/* Return the code, without the sign, that too large numbers become: infinity if the type has one,
 * otherwise the largest number. */
static inline uint32_t heft_narrow_top(const heft_float_layout *l)
{
    uint32_t sign = 1u << (l->exp_bits + l->mant_bits);
    return l->specials == HEFT_F_IEEE      ? sign - (1u << l->mant_bits)
           : l->specials == HEFT_F_ONE_NAN ? sign - 2
                                           : sign - 1;
}

static inline heft_narrowing heft_narrowing_to(const heft_float_layout *l)
{
    bool is_ieee = l->specials == HEFT_F_IEEE, has_one_nan = l->specials == HEFT_F_ONE_NAN;
    bool no_minus_zero = l->specials == HEFT_F_NEG_ZERO;
    uint32_t sign = 1u << (l->exp_bits + l->mant_bits), top = heft_narrow_top(l);
    uint32_t payload = is_ieee ? (1u << l->mant_bits) - 1 : 0;
    return (heft_narrowing){
        .sign = sign,
        .top = top,
        .down = 23u - l->mant_bits,
        .rebias = (uint32_t)(127 - l->bias) << 23,
        .to_sign = 31u - l->exp_bits - l->mant_bits,
        /* Adding a float with the same unit in the last place rounds a subnormal. */
        .unit = (uint32_t)(151 - l->bias - l->mant_bits) << 23,
        .nan = has_one_nan     ? sign - 1
               : no_minus_zero ? sign
                               : top,
        .payload = payload,
        .quiet = is_ieee ? payload / 2 + 1 : 0,
        .no_minus_zero = no_minus_zero,
        .no_minus_nan = !is_ieee && !has_one_nan,
    };
}

/* Round the magnitude of a number. */
static inline uint32_t heft_narrow_magnitude(uint32_t magnitude, const heft_narrowing *n)
{
    uint32_t half_minus_1 = (1u << (n->down - 1)) - 1, min_normal = n->rebias + (1u << 23);
    uint32_t normal = (magnitude + half_minus_1 + (magnitude >> n->down & 1) - n->rebias) >>
                      n->down;
    /* Both ways round the least normal number alike. */
    uint32_t capped = magnitude < min_normal ? magnitude : min_normal;
    uint32_t subnormal = heft_f32_bits(heft_f32_of(capped) + heft_f32_of(n->unit)) - n->unit;
    uint32_t abs = heft_pick(magnitude == capped, subnormal, normal);
    return abs < n->top ? abs : n->top;
}

/* Round an f32 that is not a NaN. */
static inline uint32_t heft_f32_narrow_number(uint32_t f, const heft_narrowing *n)
{
    uint32_t abs = heft_narrow_magnitude(f & 0x7FFFFFFF, n), minus = f >> n->to_sign & n->sign;
    return abs | heft_pick(n->no_minus_zero & !abs, 0, minus);
}

static inline uint32_t heft_f32_narrow(uint32_t f, const heft_narrowing *n)
{
    uint32_t magnitude = f & 0x7FFFFFFF, minus = f >> n->to_sign & n->sign;
    uint32_t is_nan = magnitude > 0x7F800000, payload = magnitude >> n->down & n->payload;
    uint32_t nan = n->nan | heft_pick(!payload, n->quiet, payload);
    uint32_t abs = heft_pick(is_nan, nan, heft_narrow_magnitude(magnitude, n));
    return abs | heft_pick((n->no_minus_zero & !abs) | (is_nan & n->no_minus_nan), 0, minus);
}

#endif
