/* number.c - converts single numbers of any element type: decoded exactly, rounded once. */
#include "model/number.h"

static void put_le(uint8_t *p, uint64_t v, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

/* Return the number mant * 2^(exp - 63), normalised. */
static heft_number normalise(bool negative, int32_t exp, uint64_t mant)
{
    if (!mant)
        return (heft_number){ .kind = HEFT_N_ZERO, .negative = negative };
    for (uint32_t step = 32; step; step /= 2) {
        if (mant >> (64 - step))
            continue;
        mant <<= step;
        exp -= (int32_t)step;
    }
    return (heft_number){ HEFT_N_FINITE, negative, exp, mant };
}

static heft_number decode_float(uint64_t code, const heft_float_layout *l)
{
    if (l->specials == HEFT_F_POWERS && code == 0xFF)
        return (heft_number){ .kind = HEFT_N_NAN, .mant = (uint64_t)1 << 63 };
    if (l->specials == HEFT_F_POWERS)
        return normalise(false, (int32_t)code - l->bias, (uint64_t)1 << 63);
    uint64_t sign = (uint64_t)1 << (l->exp_bits + l->mant_bits), abs = code & (sign - 1);
    uint64_t exp = abs >> l->mant_bits, last = ((uint64_t)1 << l->exp_bits) - 1;
    uint64_t mant = abs << (63 - l->mant_bits) << 1; /* two steps: a shift by 64 is undefined */
    bool negative = (code & sign) != 0;
    if (l->specials == HEFT_F_IEEE && exp == last)
        return (heft_number){ .kind = mant ? HEFT_N_NAN : HEFT_N_INFINITE,
                              .negative = negative,
                              .mant = mant };
    if (l->specials == HEFT_F_ONE_NAN && abs == sign - 1)
        return (heft_number){ .kind = HEFT_N_NAN, .negative = negative, .mant = (uint64_t)1 << 63 };
    if (l->specials == HEFT_F_NEG_ZERO && code == sign)
        return (heft_number){ .kind = HEFT_N_NAN, .mant = (uint64_t)1 << 63 };
    if (!exp)
        return normalise(negative, -l->bias, mant); /* 0.mant * 2^(1 - bias) */
    return (heft_number){ HEFT_N_FINITE, negative, (int32_t)exp - l->bias,
                          (uint64_t)1 << 63 | mant >> 1 };
}

heft_number heft_number_read(const uint8_t *p, heft_dtype t)
{
    uint32_t size = heft_dtype_size(t);
    uint64_t bits = 0;
    const heft_float_layout *l = heft_float_layout_of(t);
    for (uint32_t i = 0; i < size; i++)
        bits |= (uint64_t)p[i] << 8 * i;
    if (l)
        return decode_float(bits, l);
    if (t == HEFT_BOOL)
        return normalise(false, 63, bits != 0);
    bool negative = heft_dtype_is_signed_int(t) && bits >> (8 * size - 1);
    if (negative)
        bits = 0 - (bits | (size < 8 ? UINT64_MAX << 8 * size : 0));
    return normalise(negative, 63, bits);
}

/* Return the rounded bits of x without the sign; the caller handles overflow. */
static uint64_t round_to(heft_number x, const heft_float_layout *l)
{
    int32_t exp = x.exp + l->bias; /* biased; below 1 the number is subnormal */
    int32_t cut = 63 - l->mant_bits + (exp < 1 ? 1 - exp : 0);
    if (cut > 64)
        return 0; /* less than half of the least subnormal */
    uint64_t rounded = cut < 64 ? x.mant >> cut : 0, rest = x.mant << (64 - cut);
    const uint64_t half = (uint64_t)1 << 63;
    /* A carry out of the mantissa increments the exponent, and so does the hidden bit. */
    rounded += rest > half || (rest == half && (rounded & 1));
    return exp < 1 ? rounded : rounded + ((uint64_t)(exp - 1) << l->mant_bits);
}

/* Return the code of a NaN; the largest number in types without NaN. */
static uint64_t nan_code(heft_number x, const heft_float_layout *l, uint64_t sign)
{
    if (l->specials == HEFT_F_NEG_ZERO)
        return sign;
    if (l->specials == HEFT_F_NONE)
        return sign - 1;
    uint64_t negative = x.negative ? sign : 0;
    if (l->specials == HEFT_F_ONE_NAN)
        return negative | (sign - 1);
    uint64_t payload = x.mant >> (63 - l->mant_bits) >> 1;
    uint64_t above = (((uint64_t)1 << l->exp_bits) - 1) << l->mant_bits;
    return negative | above | (payload ? payload : (uint64_t)1 << (l->mant_bits - 1));
}

/* Return the code of f8_e8m0.  A tie rounds up: of the significands 1 and 2, 2 is even.  Zero
 * becomes the least power of two. */
static uint64_t power_code(heft_number x, const heft_float_layout *l)
{
    enum { NAN_CODE = 0xFF, TOP = 0xFE };
    if (x.kind == HEFT_N_NAN || (x.negative && x.kind != HEFT_N_ZERO))
        return NAN_CODE;
    if (x.kind != HEFT_N_FINITE)
        return x.kind == HEFT_N_INFINITE ? TOP : 0;
    int32_t code = x.exp + l->bias + (int32_t)(x.mant >> 62 & 1);
    return code < 0 ? 0 : code > TOP ? TOP : (uint64_t)code;
}

uint64_t heft_float_overflow_code(const heft_float_layout *l)
{
    uint64_t sign = (uint64_t)1 << (l->exp_bits + l->mant_bits);
    return l->specials == HEFT_F_IEEE      ? sign - ((uint64_t)1 << l->mant_bits)
           : l->specials == HEFT_F_ONE_NAN ? sign - 2
                                           : sign - 1;
}

uint64_t heft_number_code(heft_number x, const heft_float_layout *l)
{
    uint64_t sign = (uint64_t)1 << (l->exp_bits + l->mant_bits), top = heft_float_overflow_code(l),
             abs = 0;
    if (l->specials == HEFT_F_POWERS)
        return power_code(x, l);
    if (x.kind == HEFT_N_NAN)
        return nan_code(x, l, sign);
    if (x.kind == HEFT_N_FINITE)
        abs = round_to(x, l);
    if (x.kind == HEFT_N_INFINITE || abs > top)
        abs = top;
    bool signless_zero = l->specials == HEFT_F_NEG_ZERO && !abs;
    return abs | (x.negative && !signless_zero ? sign : 0);
}

static uint64_t int_code(heft_number x, uint32_t size, bool is_signed)
{
    uint64_t top = UINT64_MAX >> (64 - 8 * size + is_signed), abs = 0;
    if (x.negative)
        top = is_signed ? top + 1 : 0;
    if (x.kind == HEFT_N_INFINITE || (x.kind == HEFT_N_FINITE && x.exp > 63))
        abs = top;
    else if (x.kind == HEFT_N_FINITE && x.exp >= 0)
        abs = x.mant >> (63 - x.exp);
    if (abs > top)
        abs = top;
    return x.negative ? 0 - abs : abs;
}

void heft_number_write(uint8_t *p, heft_dtype t, heft_number x)
{
    uint32_t size = heft_dtype_size(t);
    const heft_float_layout *l = heft_float_layout_of(t);
    if (l)
        put_le(p, heft_number_code(x, l), size);
    else if (t == HEFT_BOOL)
        *p = x.kind != HEFT_N_ZERO;
    else
        put_le(p, int_code(x, size, heft_dtype_is_signed_int(t)), size);
}

/* ---- losses ---- */

static heft_cast_loss power_loss(heft_number x, bool is_int, const heft_float_layout *l)
{
    enum { TOP = 0xFE };
    int32_t code = x.exp + l->bias + (int32_t)(x.mant >> 62 & 1);
    if (x.kind == HEFT_N_NAN)
        return HEFT_LOST_NOTHING;
    if (x.kind != HEFT_N_FINITE || x.negative || code < 0 || code > TOP)
        return HEFT_LOST_CLAMPED;
    return is_int && x.mant << 1 ? HEFT_LOST_DIGITS : HEFT_LOST_NOTHING;
}

static heft_cast_loss float_loss(heft_number x, bool is_int, const heft_float_layout *l)
{
    bool has_infinity = l->specials == HEFT_F_IEEE;
    uint64_t top = heft_float_overflow_code(l);
    if (l->specials == HEFT_F_POWERS)
        return power_loss(x, is_int, l);
    if (x.kind == HEFT_N_NAN && l->specials == HEFT_F_NONE)
        return HEFT_LOST_NAN;
    if (x.kind == HEFT_N_INFINITE && !has_infinity)
        return HEFT_LOST_CLAMPED;
    if (x.kind != HEFT_N_FINITE)
        return HEFT_LOST_NOTHING;
    uint64_t abs = round_to(x, l);
    if (abs >= top && has_infinity)
        return HEFT_LOST_RANGE;
    if (abs > top)
        return HEFT_LOST_CLAMPED;
    return is_int && x.mant << (l->mant_bits + 1) ? HEFT_LOST_DIGITS : HEFT_LOST_NOTHING;
}

static heft_cast_loss int_loss(heft_number x, heft_dtype to)
{
    bool is_signed = heft_dtype_is_signed_int(to);
    uint64_t top = UINT64_MAX >> (64 - 8 * heft_dtype_size(to) + is_signed);
    if (x.negative)
        top = is_signed ? top + 1 : 0;
    if (x.kind == HEFT_N_NAN)
        return HEFT_LOST_NAN;
    if (x.kind == HEFT_N_INFINITE)
        return HEFT_LOST_CLAMPED;
    if (x.kind == HEFT_N_ZERO || x.exp < 0)
        return HEFT_LOST_NOTHING;
    return x.exp > 63 || x.mant >> (63 - x.exp) > top ? HEFT_LOST_CLAMPED : HEFT_LOST_NOTHING;
}

heft_cast_loss heft_number_loss(heft_number x, bool is_int, heft_dtype to)
{
    const heft_float_layout *l = heft_float_layout_of(to);
    return l ? float_loss(x, is_int, l) : int_loss(x, to);
}

/* Return the number of bits of an integer type without the sign. */
static uint32_t int_bits(heft_dtype t)
{
    return t == HEFT_BOOL ? 1 : 8 * heft_dtype_size(t) - heft_dtype_is_signed_int(t);
}

bool heft_real_cast_is_lossy(heft_dtype to, heft_dtype from)
{
    const heft_float_layout *l = heft_float_layout_of(to), *k = heft_float_layout_of(from);
    if (to == HEFT_BOOL || to == from)
        return false;
    if (l && l->specials != HEFT_F_IEEE)
        return true;
    if (k && l)
        return l->mant_bits < k->mant_bits || l->exp_bits < k->exp_bits;
    if (k)
        return true;
    if (l) /* the largest power of two in f16 is 2^15 */
        return int_bits(from) > l->mant_bits + 1u || int_bits(from) > (1u << (l->exp_bits - 1));
    return int_bits(from) > int_bits(to) ||
           (heft_dtype_is_signed_int(from) && !heft_dtype_is_signed_int(to));
}
