/* square_root.c - the square root by integers, a bit at a time. */

#include "model/float.h"

enum { MANTISSA_BITS = 23, HIDDEN = 1 << MANTISSA_BITS, BIAS = 127, INFINITE = 0x7F800000 };

/* Return the root of v, rounded down; v is below 2^50. */
static uint32_t integral_root(uint64_t v)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 48; bit; bit >>= 2) {
        uint64_t tried = root + bit;
        root >>= 1;
        if (v >= tried) {
            v -= tried;
            root += bit;
        }
    }
    return (uint32_t)root;
}

float heft_square_root(float v)
{
    uint32_t bits = heft_f32_bits(v), mantissa = bits & (HIDDEN - 1);
    int32_t exponent = (int32_t)(bits >> MANTISSA_BITS);
    if (v == 0 || bits == INFINITE || heft_f32_is_nan(bits))
        return v;
    if (bits >> 31)
        return heft_f32_of(0x7FC00000);
    mantissa |= exponent ? HIDDEN : 0;
    exponent += !exponent;
    for (; !(mantissa & HIDDEN); mantissa <<= 1)
        exponent--;

    /* The integral root has one bit more than the result.  An exact tie does not exist: the square
     * of an odd number is odd. */
    int32_t odd = (exponent - BIAS) & 1, half = (exponent - BIAS - odd) / 2;
    uint32_t root = integral_root((uint64_t)mantissa << (MANTISSA_BITS + 2 + odd));
    uint32_t rounded = (root + 1) >> 1;
    return heft_f32_of(((uint32_t)(half + BIAS) << MANTISSA_BITS) + (rounded - HIDDEN));
}
