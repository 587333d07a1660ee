/* realfmt.h - format floats as NumPy prints an array: the shortest digits of the stored type, at
 * most eight after the point, in one notation and width. */
#ifndef HEFT_CLI_REALFMT_H
#define HEFT_CLI_REALFMT_H
#include "text/number_text.h"

typedef struct real_format {
    heft_dtype type;
    bool imaginary;            /* imaginary components, always with a sign */
    bool exponent;             /* scientific notation: 1.5e-07 */
    int left, right;           /* characters before and after the point */
    int precision, exp_digits; /* in scientific notation */
} real_format;

/* Choose the notation and width for all values. For complex numbers, type is the components'
 * type. */
real_format real_format_for(const number *values, size_t count, heft_dtype type, bool imaginary);
void out_real(outbuf *o, const real_format *f, double v);
/* Write a single number: 1.0, 1e-05, (1+2j). half is the type of a complex number's components. o
 * writes to memory. */
void out_real_alone(outbuf *o, heft_dtype type, double v);
void out_complex_alone(outbuf *o, heft_dtype half, double real, double imaginary);

#endif
