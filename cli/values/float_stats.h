/* float_stats.h - a histogram of f32 values by comparing each value with the edges of the bins. */
#ifndef HEFT_CLI_FLOAT_STATS_H
#define HEFT_CLI_FLOAT_STATS_H
#include <heft/private.h>

#include "values/bins.h"

/* Return the smallest f32 value of each bin, and the smallest value above the last bin. */
heft_f32_edges float_edges_of(const bins *b);

#endif
