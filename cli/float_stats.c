#include "float_stats.h"

#include <string.h>

#include "float_sets.h"

static const float_loops *loops_now(void)
{
    const float_set *s = float_sets;
    while (!s->is_supported())
        s++;
    return s->loops;
}

float_block float_block_of(const float *v, size_t n)
{
    return loops_now()->block_of(v, n);
}

double float_squares(const float *v, size_t n, double mean)
{
    return loops_now()->squares(v, n, mean);
}

void float_count_bins(uint64_t counts[SUMMARY_BINS], const float *v, size_t n,
                      const float_edges *edges)
{
    loops_now()->count_bins(counts, v, n, edges);
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
