/* float_loops.c - the loops of floats.c, compiled for several instruction sets: meson.build
 * renames heft_float_loops for each. */
#include "simd/float_loops.h"

enum { LANES = 32 }; /* independent partial results, so that no addition waits for the previous */

/* Each loop has one kind of partial results: gcc vectorises no loop over several kinds. */

static double sum_of(const float *v, size_t n)
{
    double sums[LANES] = { 0 }, sum = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            sums[k] += (double)v[i + k];
    for (; i < n; i++)
        sums[i % LANES] += (double)v[i];
    for (size_t k = 0; k < LANES; k++)
        sum += sums[k];
    return sum;
}

static float min_of(const float *v, size_t n)
{
    float least[LANES], min = v[0];
    size_t i = 0;
    for (size_t k = 0; k < LANES; k++)
        least[k] = v[0];
    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            least[k] = v[i + k] < least[k] ? v[i + k] : least[k];
    for (; i < n; i++)
        least[0] = v[i] < least[0] ? v[i] : least[0];
    for (size_t k = 0; k < LANES; k++)
        min = least[k] < min ? least[k] : min;
    return min;
}

static float max_of(const float *v, size_t n)
{
    float most[LANES], max = v[0];
    size_t i = 0;
    for (size_t k = 0; k < LANES; k++)
        most[k] = v[0];
    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            most[k] = v[i + k] > most[k] ? v[i + k] : most[k];
    for (; i < n; i++)
        most[0] = v[i] > most[0] ? v[i] : most[0];
    for (size_t k = 0; k < LANES; k++)
        max = most[k] > max ? most[k] : max;
    return max;
}

static uint64_t zeros_of(const float *v, size_t n)
{
    uint32_t zeros = 0;
    for (size_t i = 0; i < n; i++)
        zeros += v[i] == 0;
    return zeros;
}

static heft_f32_summary summarize(const float *v, size_t n)
{
    heft_f32_summary b = { .sum = sum_of(v, n), .min = min_of(v, n), .max = max_of(v, n) };
    b.zeros = zeros_of(v, n);
    b.is_finite = b.sum - b.sum == 0; /* a sum of f32 does not overflow f64 */
    return b;
}

static double squares(const float *v, size_t n, double mean)
{
    double sums[LANES] = { 0 }, sum = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++) {
            double d = (double)v[i + k] - mean;
            sums[k] += d * d;
        }
    for (; i < n; i++)
        sums[i % LANES] += ((double)v[i] - mean) * ((double)v[i] - mean);
    for (size_t k = 0; k < LANES; k++)
        sum += sums[k];
    return sum;
}

static void count(uint64_t counts[HEFT_F32_BINS], const float *v, size_t n,
                  const heft_f32_edges *edges)
{
    uint32_t from[HEFT_F32_BINS + 1] = { 0 }; /* values from an edge on */
    heft_f32_edges e = *edges;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= HEFT_F32_BINS; k++)
            from[k] += v[i] >= e.first[k];
    for (size_t k = 0; k < HEFT_F32_BINS; k++)
        counts[k] += from[k] - from[k + 1];
}

const heft_float_functions heft_float_loops = { summarize, squares, count };
