/* number_text.h - single elements of tensors as exact numbers, and values of the metadata as text
 * for readers. */
#ifndef HEFT_CLI_NUMBER_TEXT_H
#define HEFT_CLI_NUMBER_TEXT_H
#include "text/outbuf.h"

typedef enum number_kind {
    NUMBER_NONE,
    NUMBER_BOOL,
    NUMBER_INT,
    NUMBER_UINT,
    NUMBER_REAL,
    NUMBER_COMPLEX
} number_kind;

typedef struct number {
    number_kind kind;
    int64_t i;
    uint64_t u; /* also for NUMBER_BOOL */
    double f, imaginary;
} number;

/* Return how the elements of a type are read; NUMBER_NONE if they have no numeric value. */
number_kind number_kind_of(heft_dtype t);
/* Read element i of the elements at src. src is at the start of a block. */
number number_at(heft_dtype t, const void *src, uint64_t i);
/* Return the fewest digits, at most 17, that distinguish a finite v from its neighbours in type t.
 * Pass the result minus 1 as the precision of "%.*e". */
int number_digits(double v, heft_dtype t);

/* Write the value; of a text at most `most` bytes, with its length. Lists and maps are numbers of
 * values. */
void out_value(outbuf *o, const heft_value *v, size_t most);
const char *dtype_name(heft_dtype t); /* "f32"; NULL for HEFT_UNTYPED */
void out_dtype(outbuf *o, heft_dtype t);

/* ---- format floats as NumPy prints an array ---- */

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
