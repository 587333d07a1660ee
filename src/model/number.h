/* number.h - numbers of any element type one by one, exactly. */
#ifndef HEFT_NUMBER_H
#define HEFT_NUMBER_H
#include "model/dtype.h"

typedef struct heft_number {
    enum { HEFT_N_ZERO, HEFT_N_FINITE, HEFT_N_INFINITE, HEFT_N_NAN } kind;
    bool negative;
    int32_t exp; /* HEFT_N_FINITE: the value is mant * 2^(exp - 63), with the top bit of mant set */
    uint64_t mant; /* HEFT_N_NAN: the payload from the top bit down */
} heft_number;

/* Of a plain type that is not complex, little-endian. */
heft_number heft_number_read(const uint8_t *p, heft_dtype t);
/* The number of type t that is nearest. */
void heft_number_write(uint8_t *p, heft_dtype t, heft_number x);
/* The bits of the nearest number of a floating-point type. */
uint64_t heft_number_code(heft_number x, const heft_float_layout *l);
/* What a cast does to a number that its type does not hold, but for rounding.  docs/casting.md */
typedef enum heft_cast_loss {
    HEFT_LOST_RANGE,   /* a number beyond the largest becomes infinite */
    HEFT_LOST_CLAMPED, /* a number beyond the largest or smallest becomes that one */
    HEFT_LOST_NAN,     /* NaN becomes a number */
    HEFT_LOST_DIGITS,  /* an integer has more digits than the mantissa */
    HEFT_CAST_LOSSES,  /* how many kinds there are */
    HEFT_LOST_NOTHING = HEFT_CAST_LOSSES
} heft_cast_loss;
/* is_int: x comes from an integer type. */
heft_cast_loss heft_number_loss(heft_number x, bool is_int, heft_dtype to);
/* Whether type `to` may lack a number of type `from`: of two plain or packed types, not complex. */
bool heft_real_cast_is_lossy(heft_dtype to, heft_dtype from);

/* heft_dtype_cast() that adds to lost[], by kind, how many numbers it does not carry, both parts of a complex one; lost NULL:
 * does not count. */
bool heft_cast_counted(void *dst, heft_dtype to, const void *src, heft_dtype from, size_t count,
                       uint64_t *lost);
/* Whether such a cast may lose anything. */
bool heft_cast_is_lossy(heft_dtype to, heft_dtype from);

/* What numbers that are too large become, below the sign: infinity where there is one, else the largest. */
uint64_t heft_float_top(const heft_float_layout *l);

#endif
