/* bins.h - a histogram of equally wide bins between two values. */
#ifndef HEFT_CLI_BINS_H
#define HEFT_CLI_BINS_H
#include <heft/private.h>

enum { SUMMARY_BINS = HEFT_F32_BINS };

typedef struct bins {
    double min, max, low, scale;
    size_t count;
} bins;

/* Prepare `count` bins from min to max. Values are halved because max - min may overflow a
 * double. */
static inline bins bins_between(double min, double max, size_t count)
{
    double low = min / 2, range = max / 2 - low;
    return (bins){ min, max, low, range > 1e-300 ? (double)count / range : 0, count };
}

/* Return the bin of a value from min to max. */
static inline size_t bin_of(const bins *b, double v)
{
    double at = (v / 2 - b->low) * b->scale;
    return !(at > 0) ? 0 : at < (double)b->count ? (size_t)at : b->count - 1;
}

/* ---- a histogram of f32 values by comparing each value with the edges of the bins ---- */

/* Return the smallest f32 value of each of SUMMARY_BINS bins, and the smallest value above the last
 * bin. */
heft_f32_edges float_edges_of(const bins *b);

#endif
