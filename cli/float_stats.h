/* float_stats.h - loops over blocks of f32 values for statistics, which compilers vectorise.
 *
 * Sums have a fixed number of partial sums, so the results are the same for every instruction set
 * and every number of threads. */
#ifndef HEFT_CLI_FLOAT_STATS_H
#define HEFT_CLI_FLOAT_STATS_H
#include <stdbool.h>

#include "bins.h"

enum { FLOAT_BLOCK = 4096 }; /* values of a block at most */

typedef struct float_block {
    bool is_finite; /* the other members are unset if a value is NaN or infinite */
    uint64_t zeros;
    float min, max;
    double sum;
} float_block;

/* Summarise n values, at least one. */
float_block float_block_of(const float *v, size_t n);
/* Return the sum of the squared distances from the mean. */
double float_squares(const float *v, size_t n, double mean);

/* The smallest f32 value of each bin, and the smallest value above the last bin. */
typedef struct float_edges {
    float first[SUMMARY_BINS + 1];
} float_edges;

float_edges float_edges_of(const bins *b);
/* Add n values to the counts of the bins; values outside the bins are left out. */
void float_count_bins(uint64_t counts[SUMMARY_BINS], const float *v, size_t n,
                      const float_edges *edges);

#endif
