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

static inline void turn_square(lanes v[LANES])
{
    lanes pairs[LANES], fours[LANES];
    for (int i = 0; i < LANES; i += 2) {
        pairs[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
    for (int i = 0; i < LANES; i += 4)
        for (int k = 0; k < 2; k++) {
            __m256d a = (__m256d)pairs[i + k], b = (__m256d)pairs[i + k + 2];
            fours[i + 2 * k] = (lanes)_mm256_unpacklo_pd(a, b);
            fours[i + 2 * k + 1] = (lanes)_mm256_unpackhi_pd(a, b);
        }
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(fours[i], fours[4 + i], 0x20);
        v[4 + i] = _mm256_permute2f128_ps(fours[i], fours[4 + i], 0x31);
    }
}

#include "simd/encode_loops.h"
#include "simd/encode_sets.h"

const heft_fits heft_fits_avx2 = HEFT_FITS;
