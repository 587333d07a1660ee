/* blake3_sse4_1.c - BLAKE3 in 4 lanes. */
#include <immintrin.h>
#include <stdint.h>

#include "simd/blake3_kernels.h"

enum { LANES = 4 };
typedef uint32_t lanes __attribute__((vector_size(16)));

static inline lanes rotate_16(lanes v)
{
    const __m128i order = _mm_set_epi8(13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2);
    return (lanes)_mm_shuffle_epi8((__m128i)v, order);
}

static inline lanes rotate_12(lanes v)
{
    return v >> 12 | v << 20;
}

static inline lanes rotate_8(lanes v)
{
    const __m128i order = _mm_set_epi8(12, 15, 14, 13, 8, 11, 10, 9, 4, 7, 6, 5, 0, 3, 2, 1);
    return (lanes)_mm_shuffle_epi8((__m128i)v, order);
}

static inline lanes rotate_7(lanes v)
{
    return v >> 7 | v << 25;
}

static inline lanes zip_low(lanes a, lanes b)
{
    return (lanes)_mm_unpacklo_epi32((__m128i)a, (__m128i)b);
}

static inline lanes zip_high(lanes a, lanes b)
{
    return (lanes)_mm_unpackhi_epi32((__m128i)a, (__m128i)b);
}

static inline lanes zip_pairs_low(lanes a, lanes b)
{
    return (lanes)_mm_unpacklo_epi64((__m128i)a, (__m128i)b);
}

static inline lanes zip_pairs_high(lanes a, lanes b)
{
    return (lanes)_mm_unpackhi_epi64((__m128i)a, (__m128i)b);
}

static inline lanes load_pieces(const uint8_t *const *inputs, size_t at)
{
    return (lanes)_mm_loadu_si128((const __m128i *)(inputs[0] + at));
}

#include "simd/blake3_squares.h"

#include "simd/blake3_lanes.h"

void heft_blake3_chunks_sse4_1(uint32_t (*out)[8], const uint8_t *p, size_t count, uint64_t number)
{
    hash_chunks(out, p, count, number);
}

void heft_blake3_parents_sse4_1(uint32_t (*cv)[8], size_t count)
{
    hash_parents(cv, count);
}
