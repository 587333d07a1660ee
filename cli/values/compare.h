/* compare.h - compare the values of two tensors, of any element types, within a tolerance. */
#ifndef HEFT_CLI_COMPARE_H
#define HEFT_CLI_COMPARE_H
#include <heft/check.h>
#include <heft/quantise.h>

#include "process/cmd.h"
#include "process/command_session.h"
#include "process/work.h"
#include "text/outbuf.h"

typedef struct tolerance {
    double absolute, relative;
    uint64_t ulp; /* spacings of the less precise type at the larger of the two values */
} tolerance;

typedef struct difference {
    uint64_t differing, compared; /* numbers of elements, or of bytes if bytewise */
    uint64_t first;               /* first differing element or byte; HEFT_NOWHERE: none */
    double max_abs, max_rel;      /* over all numbers that are not equal; never NaN */
    /* Sums over all pairs of finite numbers a and b. */
    uint64_t finite;
    double sum_abs, sum_squares; /* sums of |a - b| and of its square */
    double squares_a, squares_b, products;
    bool incomparable; /* the parts have other roles, types or lengths */
    bool bytewise;     /* the values are not numbers; maxima and sums are unset */
} difference;

typedef struct side {
    const heft_file *f;
    const char *path;
    uint32_t tensor;
    heft_checked_read *checks; /* verifies the digests of the bytes read, or NULL */
} side;

/* Return true if values of the two types can be compared: numbers with numbers, complex numbers
 * with complex numbers, anything with values of the same type. */
bool compare_suits(heft_dtype a, heft_dtype b);
/* Compare by numpy.isclose's rule, |a - b| <= absolute + relative * |b|, or by the ulps; NaN equals
 * NaN. Numbers of two types are compared as doubles, 64-bit integers exactly. Errors stop the
 * work. */
void compare_tensors(difference *d, work *w, const side *a, const side *b, tolerance t);

/* Statistics of a comparison of numbers; NaN if undefined. */
double difference_mean_abs(const difference *d);
double difference_rmse(const difference *d);
/* Mean square of a - b divided by the mean square of b. */
double difference_nmse(const difference *d);
double difference_cosine(const difference *d);

/* ---- how far the numbers of a quantised model are from those of the source ---- */

/* Print the tensors that are farthest apart, and a line for the whole model; with as_json all
 * tensors in one document. Return an exit code. */
int quality_print(const heft_quality *q, const session *s, int fd, bool as_json);

#endif
