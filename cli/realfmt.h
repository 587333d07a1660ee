/* realfmt.h - floats as NumPy prints an array of them: the shortest digits of their own type, at
 * most eight behind the point, in one common form and width. */
#ifndef HEFT_CLI_REALFMT_H
#define HEFT_CLI_REALFMT_H
#include "number_text.h"

typedef struct real_format {
    heft_dtype type;
    bool imaginary;            /* of complex numbers, with its sign always */
    bool exponent;             /* 1.5e-07 rather than 0.5 */
    int left, right;           /* characters before and behind the point */
    int precision, exp_digits; /* with an exponent */
} real_format;

/* The form that suits all the values; the type of complex numbers is that of their halves. */
real_format real_format_for(const number *values, size_t count, heft_dtype type, bool imaginary);
void out_real(outbuf *o, const real_format *f, double v);
/* A number that stands alone: 1.0, 1e-05, (1+2j); half is the type of a complex number's halves.
 * o is in memory. */
void out_real_alone(outbuf *o, heft_dtype type, double v);
void out_complex_alone(outbuf *o, heft_dtype half, double real, double imaginary);

#endif
