/* floats.c - the functions of private.h, for the processor. */
#include "base/kernels.h"
#include "simd/float_loops.h"

heft_f32_summary heft_f32_summarize(const float *values, size_t count)
{
    return heft_kernels_now()->floats->summarize(values, count);
}

double heft_f32_squares(const float *values, size_t count, double mean)
{
    return heft_kernels_now()->floats->squares(values, count, mean);
}

void heft_f32_count(uint64_t counts[HEFT_F32_BINS], const float *values, size_t count,
                    const heft_f32_edges *edges)
{
    heft_kernels_now()->floats->count(counts, values, count, edges);
}
