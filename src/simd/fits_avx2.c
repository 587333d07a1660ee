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

static inline float least_lane(lanes v)
{
    __m128 four = _mm_min_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 two = _mm_min_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_min_ss(two, _mm_movehdup_ps(two)));
}

static inline float most_lane(lanes v)
{
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

#include "simd/encode_loops.h"
#include "simd/encode_sets.h"

const heft_fits heft_fits_avx2 = HEFT_FITS;
