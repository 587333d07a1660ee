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

static inline void turn_square(lanes v[LANES])
{
    lanes pairs[LANES], fours[LANES];
    for (int i = 0; i < LANES; i += 2) {
        pairs[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    for (int i = 0; i < LANES; i += 4)
        for (int k = 0; k < 2; k++) {
            __m512d a = (__m512d)pairs[i + k], b = (__m512d)pairs[i + k + 2];
            fours[i + 2 * k] = (lanes)_mm512_unpacklo_pd(a, b);
            fours[i + 2 * k + 1] = (lanes)_mm512_unpackhi_pd(a, b);
        }
    for (int i = 0; i < 4; i++) {
        lanes even = _mm512_shuffle_f32x4(fours[i], fours[4 + i], 0x88);
        lanes odd = _mm512_shuffle_f32x4(fours[i], fours[4 + i], 0xDD);
        lanes next_even = _mm512_shuffle_f32x4(fours[8 + i], fours[12 + i], 0x88);
        lanes next_odd = _mm512_shuffle_f32x4(fours[8 + i], fours[12 + i], 0xDD);
        v[i] = _mm512_shuffle_f32x4(even, next_even, 0x88);
        v[4 + i] = _mm512_shuffle_f32x4(odd, next_odd, 0x88);
        v[8 + i] = _mm512_shuffle_f32x4(even, next_even, 0xDD);
        v[12 + i] = _mm512_shuffle_f32x4(odd, next_odd, 0xDD);
    }
}

#include "simd/encode_loops.h"
#include "simd/encode_sets.h"

const heft_fits heft_fits_avx512 = HEFT_FITS;
