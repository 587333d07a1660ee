/* number.h - exact conversion of single numbers of any element type. */
#ifndef HEFT_NUMBER_H
#define HEFT_NUMBER_H
#include "model/dtype.h"

typedef struct heft_number {
    enum { HEFT_N_ZERO, HEFT_N_FINITE, HEFT_N_INFINITE, HEFT_N_NAN } kind;
    bool negative;
    /* HEFT_N_FINITE: the value is mant * 2^(exp - 63), with the top bit of mant set.
     * HEFT_N_NAN: mant is the payload, from the top bit down. */
    int32_t exp;
    uint64_t mant;
} heft_number;

/* Read a little-endian number of a plain type that is not complex. */
heft_number heft_number_read(const uint8_t *p, heft_dtype t);
/* Write the nearest number of type t, a plain type that is not complex. */
void heft_number_write(uint8_t *p, heft_dtype t, heft_number x);
/* Return the bits of the nearest number of a floating-point type. */
uint64_t heft_number_code(heft_number x, const heft_float_layout *l);
/* Losses of a cast other than the rounding of floats; see docs/casting.md. */
typedef enum heft_cast_loss {
    HEFT_LOST_RANGE,   /* a number beyond the largest becomes infinite */
    HEFT_LOST_CLAMPED, /* a number beyond the largest or smallest becomes the largest or smallest */
    HEFT_LOST_NAN,     /* NaN becomes a number */
    HEFT_LOST_DIGITS,  /* an integer has more digits than the mantissa */
    HEFT_CAST_LOSSES,  /* number of kinds */
    HEFT_LOST_NOTHING = HEFT_CAST_LOSSES
} heft_cast_loss;
/* Return the loss of casting x to a type other than bool; is_int: x comes from an integer type. */
heft_cast_loss heft_number_loss(heft_number x, bool is_int, heft_dtype to);
/* Return true if type `to` may lack a number of type `from`; both are plain or packed and not
 * complex. */
bool heft_real_cast_is_lossy(heft_dtype to, heft_dtype from);

/* Cast like heft_dtype_cast(), and add to lost[], by kind, the number of lost values; both parts of
 * a complex number count.  lost NULL: do not count. */
bool heft_cast_counted(void *dst, heft_dtype to, const void *src, heft_dtype from, size_t count,
                       uint64_t *lost);
/* Return true if heft_dtype_cast() may lose values of type `from`. */
bool heft_cast_is_lossy(heft_dtype to, heft_dtype from);

/* Return the code, without the sign, that too large numbers become: infinity if the type has one,
 * otherwise the largest number. */
uint64_t heft_float_overflow_code(const heft_float_layout *l);

#endif
