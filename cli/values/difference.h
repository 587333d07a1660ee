/* difference.h - how far the values of two tensors are from each other, and how that is printed. */
#ifndef HEFT_CLI_DIFFERENCE_H
#define HEFT_CLI_DIFFERENCE_H
#include "text/jsonout.h"

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

/* Statistics of a comparison of numbers; NaN if undefined. */
double difference_mean_abs(const difference *d);
double difference_rmse(const difference *d);
/* Mean square of a - b divided by the mean square of b. */
double difference_nmse(const difference *d);
double difference_cosine(const difference *d);

/* Order numbers for qsort() from the largest to the smallest; NaN comes last. */
int statistic_order(double a, double b);
enum { COSINE_DIGITS = 9 };
/* Write a number, or - if it is undefined. */
void out_statistic(outbuf *o, int digits, double v);
/* Write the statistics as members of the open object, null if undefined or without has_numbers.
 * max_rel and mean_abs are left out without has_all. */
void json_statistics(json *j, const difference *d, bool has_numbers, bool has_all);

#endif
