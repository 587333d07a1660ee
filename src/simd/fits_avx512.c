/* fits_avx512.c - searches of encoders with AVX-512. */
#include <immintrin.h>
#include <stdint.h>

enum { LANES = 16 };
typedef float lanes __attribute__((vector_size(64)));
typedef int32_t lane_ints __attribute__((vector_size(64)));
typedef __mmask16 lane_mask;

static inline lane_mask is_less(lanes a, lanes b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

static inline lanes pick(lane_mask m, lanes a, lanes b)
{
    return _mm512_mask_blend_ps(m, b, a);
}

static inline uint32_t mask_bits(lane_mask m)
{
    return m;
}

static inline lanes least_of(lanes a, lanes b)
{
    return _mm512_min_ps(a, b);
}

static inline lanes most_of(lanes a, lanes b)
{
    return _mm512_max_ps(a, b);
}

static inline float least_lane(lanes v)
{
    return _mm512_reduce_min_ps(v);
}

static inline float most_lane(lanes v)
{
    return _mm512_reduce_max_ps(v);
}

#include "simd/encode_loops.h"
#include "simd/encode_sets.h"

const heft_fits heft_fits_avx512 = HEFT_FITS;
