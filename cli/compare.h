/* compare.h - compare the values of two tensors within a tolerance. */
#ifndef HEFT_CLI_COMPARE_H
#define HEFT_CLI_COMPARE_H
#include "work.h"

typedef struct tolerance {
    double absolute, relative;
} tolerance;

typedef struct difference {
    uint64_t differing, compared; /* elements, or bytes if bytewise */
    double max_abs, max_rel;      /* over all numbers that are not bitwise equal */
    bool incomparable;            /* the parts have other roles, types or lengths */
    bool bytewise;                /* the values are not numbers; max_abs and max_rel are unset */
} difference;

typedef struct side {
    const heft_file *f;
    const char *path;
    uint32_t tensor;
    heft_checked_read *checks; /* verifies the digests of the bytes read, or NULL */
} side;

/* Compare by numpy.isclose's rule, |a - b| <= absolute + relative * |b|; NaN equals NaN. Errors
 * stop the work. */
void compare_tensors(difference *d, work *w, const side *a, const side *b, tolerance t);

#endif
