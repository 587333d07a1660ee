/* blake3_avx2.c - BLAKE3 in 8 lanes. */
#include <immintrin.h>
#include <stdint.h>

#include "simd/blake3_kernels.h"

enum { LANES = 8 };
typedef uint32_t lanes __attribute__((vector_size(32)));

static inline lanes rotate_16(lanes v)
{
    const __m256i order = _mm256_set_epi8(13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2, 13,
                                          12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2);
    return (lanes)_mm256_shuffle_epi8((__m256i)v, order);
}

static inline lanes rotate_12(lanes v)
{
    return v >> 12 | v << 20;
}

static inline lanes rotate_8(lanes v)
{
    const __m256i order = _mm256_set_epi8(12, 15, 14, 13, 8, 11, 10, 9, 4, 7, 6, 5, 0, 3, 2, 1, 12,
                                          15, 14, 13, 8, 11, 10, 9, 4, 7, 6, 5, 0, 3, 2, 1);
    return (lanes)_mm256_shuffle_epi8((__m256i)v, order);
}

static inline lanes rotate_7(lanes v)
{
    return v >> 7 | v << 25;
}

static inline lanes zip_low(lanes a, lanes b)
{
    return (lanes)_mm256_unpacklo_epi32((__m256i)a, (__m256i)b);
}

static inline lanes zip_high(lanes a, lanes b)
{
    return (lanes)_mm256_unpackhi_epi32((__m256i)a, (__m256i)b);
}

static inline lanes zip_pairs_low(lanes a, lanes b)
{
    return (lanes)_mm256_unpacklo_epi64((__m256i)a, (__m256i)b);
}

static inline lanes zip_pairs_high(lanes a, lanes b)
{
    return (lanes)_mm256_unpackhi_epi64((__m256i)a, (__m256i)b);
}

static inline lanes load_pieces(const uint8_t *const *inputs, size_t at)
{
    __m128i low = _mm_loadu_si128((const __m128i *)(inputs[0] + at));
    __m128i high = _mm_loadu_si128((const __m128i *)(inputs[4] + at));
    return (lanes)_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

#include "simd/blake3_squares.h"

#include "simd/blake3_lanes.h"

void heft_blake3_chunks_avx2(uint32_t (*out)[8], const uint8_t *p, size_t count, uint64_t number)
{
    hash_chunks(out, p, count, number);
}

void heft_blake3_parents_avx2(uint32_t (*cv)[8], size_t count)
{
    hash_parents(cv, count);
}
