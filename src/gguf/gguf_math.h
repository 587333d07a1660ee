/* gguf_math.h - powers and logarithms without a C library, exact to about 1e-15. */
#ifndef HEFT_GGUF_MATH_H
#define HEFT_GGUF_MATH_H
#include "model/float.h"

/* Return the natural logarithm of a finite number above 0 that is not subnormal. */
static inline double heft_ln(double x)
{
    const double ln2 = 0.693147180559945309417, root = 1.41421356237309504880;
    uint64_t bits = heft_f64_bits(x);
    int exponent = (int)(bits >> 52) - 1023;
    double m = heft_f64_of((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000);
    if (m > root) {
        m /= 2;
        exponent++;
    }

    /* ln m = 2 artanh y */
    double y = (m - 1) / (m + 1), term = y, sum = 0;
    for (int i = 1; i < 48; i += 2, term *= y * y)
        sum += term / i;
    return 2 * sum + exponent * ln2;
}

/* Return e to the power of x, for |x| below 700. */
static inline double heft_exp(double x)
{
    const double ln2 = 0.693147180559945309417;
    double steps = x / ln2;
    int n = (int)(steps + (steps < 0 ? -0.5 : 0.5));
    double rest = x - n * ln2, term = 1, sum = 0;
    for (int i = 1; i < 24; i++) {
        sum += term;
        term *= rest / i;
    }
    return sum * heft_f64_of((uint64_t)(n + 1023) << 52);
}

/* Return the number by which llama.cpp multiplies rotated numbers for a factor of YaRN; 0: the
 * factor is too small for one. */
static inline double heft_gguf_yarn_scale(double factor)
{
    const double least = 1e-3;
    return factor < least ? 0 : 1 + 0.1 * heft_ln(factor);
}

#endif
