/* compare.h - whether two tensors hold the same values, and how far apart they are. */
#ifndef HEFT_CLI_COMPARE_H
#define HEFT_CLI_COMPARE_H
#include "work.h"

typedef struct tolerance {
    double absolute, relative;
} tolerance;

typedef struct difference {
    uint64_t differing, compared; /* elements; bytes where there are no numbers */
    double max_abs, max_rel;      /* of the numbers that are not bitwise equal */
    bool incomparable;            /* other parts, or parts of other lengths */
    bool bytewise;                /* no numbers: max_abs and max_rel mean nothing */
} difference;

typedef struct side {
    const heft_file *f;
    const char *path;
    uint32_t tensor;
    heft_checked_read *checks; /* NULL, or what checks the digests of what is read */
} side;

/* numpy.isclose's rule, |a - b| <= absolute + relative * |b|, with NaN equal to NaN. */
void compare_tensors(difference *d, work *w, const side *a, const side *b, tolerance t);

#endif
