/* fits_avx2.c - searches of encoders with AVX2. */
#include <immintrin.h>
#include <stdint.h>

enum { LANES = 8 };
typedef float lanes __attribute__((vector_size(32)));
typedef int32_t lane_ints __attribute__((vector_size(32)));
typedef lane_ints lane_mask;

static inline lane_mask is_less(lanes a, lanes b)
{
    return (lane_mask)_mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

static inline lanes pick(lane_mask m, lanes a, lanes b)
{
    return _mm256_blendv_ps(b, a, (lanes)m);
}

static inline uint32_t mask_bits(lane_mask m)
{
    return (uint32_t)_mm256_movemask_ps((lanes)m);
}

static inline lanes least_of(lanes a, lanes b)
{
    return _mm256_min_ps(a, b);
}

static inline lanes most_of(lanes a, lanes b)
{
    return _mm256_max_ps(a, b);
}

#include "simd/encode_loops.h"
#include "simd/encode_sets.h"

const heft_fits heft_fits_avx2 = HEFT_FITS;
