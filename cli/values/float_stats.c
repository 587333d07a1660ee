#include "values/bins.h"

#include <string.h>

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

heft_f32_edges float_edges_of(const bins *b)
{
    heft_f32_edges e;
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
