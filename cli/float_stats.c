#include "float_stats.h"

#include <math.h>
#include <string.h>

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

float_block float_block_of(const float *v, size_t n)
{
    float_block b = { .sum = sum_of(v, n), .min = min_of(v, n), .max = max_of(v, n) };
    b.zeros = zeros_of(v, n);
    b.is_finite = isfinite(b.sum); /* a sum of f32 does not overflow f64 */
    return b;
}

double float_squares(const float *v, size_t n, double mean)
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

/* Return the float at a position in the order of all floats: 0 is the most negative NaN. */
static float float_at(uint32_t position)
{
    uint32_t bits = position >> 31 ? position & INT32_MAX : ~position;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static uint32_t position_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

float_edges float_edges_of(const bins *b)
{
    float_edges e;
    uint32_t least = position_of((float)b->min), end = position_of((float)b->max) + 1;
    for (size_t i = 0; i <= SUMMARY_BINS; i++) {
        uint32_t low = least, high = end;
        while (low < high) { /* bin_of() never falls as the value grows */
            uint32_t middle = low + (high - low) / 2;
            bool is_before = i == SUMMARY_BINS || bin_of(b, (double)float_at(middle)) < i;
            low = is_before ? middle + 1 : low;
            high = is_before ? high : middle;
        }
        e.first[i] = float_at(low); /* infinity after the greatest float */
    }
    return e;
}

void float_count_bins(uint64_t counts[SUMMARY_BINS], const float *v, size_t n,
                      const float_edges *edges)
{
    uint32_t from[SUMMARY_BINS + 1] = { 0 }; /* values from an edge on */
    float_edges e = *edges;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= SUMMARY_BINS; k++)
            from[k] += v[i] >= e.first[k];
    for (size_t k = 0; k < SUMMARY_BINS; k++)
        counts[k] += from[k] - from[k + 1];
}
