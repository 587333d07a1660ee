/* floats.h - statistics of blocks of f32 values, with the vector instructions of the processor.
 *
 * Sums have a fixed number of partial sums, so that all processors compute the same bits.  The
 * functions neither allocate nor fail, and several threads may call them at once.  Not part of
 * builds without an operating system. */
#ifndef HEFT_FLOATS_H
#define HEFT_FLOATS_H
#include <heft/heft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- blocks of f32 values ------------------------------------------------------------------ */

typedef struct heft_f32_summary {
    bool is_finite; /* false: a value is NaN or infinite, and min, max and sum mean nothing */
    uint64_t zeros; /* values equal to 0 or -0 */
    float min, max;
    double sum;
} heft_f32_summary;
/* Summarise values; count is from 1 to UINT32_MAX. */
HEFT_API heft_f32_summary heft_f32_summarise(const float *values, size_t count);
/* Return the sum of the squared distances of finite values from a mean. */
HEFT_API double heft_f32_squares(const float *values, size_t count, double mean);

enum { HEFT_F32_BINS = 8 };
/* Bin i has the values from first[i] to below first[i + 1]; the edges must not fall. */
typedef struct heft_f32_edges {
    float first[HEFT_F32_BINS + 1];
} heft_f32_edges;
/* Add the numbers of values in each bin to counts; NaN and values outside the bins are left out.
 * count is at most UINT32_MAX. */
HEFT_API void heft_f32_count(uint64_t counts[HEFT_F32_BINS], const float *values, size_t count,
                             const heft_f32_edges *edges);

#ifdef __cplusplus
}
#endif
#endif
