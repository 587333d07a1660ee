/* cbor_heads.h - encoding of item heads and conversion between float sizes, for reader and
 * writer. */
#ifndef HEFT_CBOR_HEADS_H
#define HEFT_CBOR_HEADS_H
#include <stdbool.h>
#include <stdint.h>

enum { MAJOR_UINT, MAJOR_NINT, MAJOR_BYTES, MAJOR_TEXT }; /* major types */
enum { MAJOR_ARRAY = 4, MAJOR_MAP, MAJOR_TAG, MAJOR_7 };
enum { ONE_BYTE = 24, TWO_BYTES, FOUR_BYTES, EIGHT_BYTES, NO_LENGTH = 31 }; /* additional info */
enum { FALSE = 20, TRUE, NIL, UNDEFINED };                                  /* simple values */

enum { F16_MANT = 10, F16_EXP = 5, F32_MANT = 23, F32_EXP = 8, F64_MANT = 52, F64_EXP = 11 };

/* Convert the bits of a smaller float to the bits of a double, exactly; NaNs keep the payload. */
static inline uint64_t heft_cbor_widen(uint64_t bits, unsigned mant_bits, unsigned exp_bits)
{
    uint64_t sign = bits >> (mant_bits + exp_bits) << 63, low = 64 - mant_bits;
    uint64_t mant = bits << low >> low, max_exp = (1u << exp_bits) - 1;
    uint64_t exp = bits >> mant_bits & max_exp, bias = (max_exp >> 1);
    if (exp == max_exp)
        return sign | UINT64_C(0x7FF) << F64_MANT | mant << (F64_MANT - mant_bits);
    if (!exp && !mant)
        return sign;
    if (!exp) { /* subnormal: normalise, so that the leading 1 becomes the implicit bit */
        for (exp = 1; !(mant >> mant_bits); exp--)
            mant <<= 1;
        mant ^= UINT64_C(1) << mant_bits;
    }
    return sign | (exp + 1023 - bias) << F64_MANT | mant << (F64_MANT - mant_bits);
}

/* Convert the bits of a double to the bits of a smaller float; return false if bits would be
 * lost. */
static inline bool heft_cbor_narrow(uint64_t *out, uint64_t bits, unsigned mant_bits,
                                    unsigned exp_bits)
{
    unsigned cut = F64_MANT - mant_bits;
    uint64_t mant = bits & ((UINT64_C(1) << F64_MANT) - 1), max_exp = (1u << exp_bits) - 1;
    int32_t exp = (int32_t)(bits >> F64_MANT & 0x7FF) - 1023, bias = (int32_t)(max_exp >> 1);
    *out = bits >> 63 << (mant_bits + exp_bits);
    if (!(bits << 1))
        return true;
    if (exp == 1024) { /* infinity or NaN */
        *out |= max_exp << mant_bits | mant >> cut;
        return !(mant << (64 - cut));
    }
    if (exp > bias || exp < 1 - bias - (int32_t)mant_bits)
        return false;
    if (exp < 1 - bias) {
        cut += (unsigned)(1 - bias - exp);
        mant |= UINT64_C(1) << F64_MANT;
    } else {
        *out |= (uint64_t)(exp + bias) << mant_bits;
    }
    *out |= mant >> cut;
    return !(mant << (64 - cut));
}

#endif
