/* fits_baseline.c - searches of encoders with the vectors of the compiler's baseline. */
#include <stdint.h>

enum { LANES = 4 };
typedef float lanes __attribute__((vector_size(16)));
typedef int32_t lane_ints __attribute__((vector_size(16)));
typedef lane_ints lane_mask;

static inline lane_mask is_less(lanes a, lanes b)
{
    return a < b;
}

static inline lanes pick(lane_mask m, lanes a, lanes b)
{
    return (lanes)((m & (lane_ints)a) | (~m & (lane_ints)b));
}

static inline uint32_t mask_bits(lane_mask m)
{
    uint32_t bits = 0;
    for (uint32_t k = 0; k < LANES; k++)
        bits |= (uint32_t)(m[k] & 1) << k;
    return bits;
}

static inline lanes least_of(lanes a, lanes b)
{
    return pick(a < b, a, b);
}

static inline lanes most_of(lanes a, lanes b)
{
    return pick(b < a, a, b);
}

static inline float least_lane(lanes v)
{
    float least = v[0];
    for (uint32_t k = 1; k < LANES; k++)
        least = v[k] < least ? v[k] : least;
    return least;
}

static inline float most_lane(lanes v)
{
    return -least_lane(-v);
}

static inline void turn_square(lanes v[LANES])
{
    lanes turned[LANES];
    for (uint32_t i = 0; i < LANES; i++)
        turned[i] = (lanes){ v[0][i], v[1][i], v[2][i], v[3][i] };
    for (uint32_t i = 0; i < LANES; i++)
        v[i] = turned[i];
}

#include "simd/encode_loops.h"
#include "simd/encode_sets.h"

const heft_fits heft_fits_baseline = HEFT_FITS;
