/* decimal.h - formats doubles as text, without a C library. */
#ifndef HEFT_DECIMAL_H
#define HEFT_DECIMAL_H
#include <stddef.h>

enum { HEFT_F64_TEXT = 32 };
/* Write the shortest decimal number that reads back as v, with a fraction or an exponent: 1.0, 0.1,
 * 1e-05, 1e+16; or nan, inf, -inf.  No terminator; return the number of characters. */
size_t heft_f64_text(char out[HEFT_F64_TEXT], double v);

#endif
