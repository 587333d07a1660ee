/* decimal.h - doubles as text, without a libc. */
#ifndef HEFT_DECIMAL_H
#define HEFT_DECIMAL_H
#include <stddef.h>

enum { HEFT_F64_TEXT = 32 };
/* The shortest decimal number that reads back as v, with a fraction or an exponent: 1.0, 0.1, 1e-05, 1e+16;
 * nan, inf, -inf.  No terminator; returns how many characters. */
size_t heft_f64_text(char out[HEFT_F64_TEXT], double v);

#endif
