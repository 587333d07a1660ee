/* blake3_avx512.c - BLAKE3 in 16 lanes. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "simd/blake3_kernels.h"

enum { LANES = 16 };
typedef uint32_t lanes __attribute__((vector_size(64)));

static inline lanes rotate_16(lanes v)
{
    return (lanes)_mm512_ror_epi32((__m512i)v, 16);
}

static inline lanes rotate_12(lanes v)
{
    return (lanes)_mm512_ror_epi32((__m512i)v, 12);
}

static inline lanes rotate_8(lanes v)
{
    return (lanes)_mm512_ror_epi32((__m512i)v, 8);
}

static inline lanes rotate_7(lanes v)
{
    return (lanes)_mm512_ror_epi32((__m512i)v, 7);
}

static inline lanes zip_low(lanes a, lanes b)
{
    const lanes order = { 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23 };
    return (lanes)_mm512_permutex2var_epi32((__m512i)a, (__m512i)order, (__m512i)b);
}

static inline lanes zip_high(lanes a, lanes b)
{
    const lanes order = { 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31 };
    return (lanes)_mm512_permutex2var_epi32((__m512i)a, (__m512i)order, (__m512i)b);
}

/* Transpose a square of integers: interleave the halves log2(LANES) times. */
static inline void transpose(lanes v[LANES])
{
    for (unsigned step = 1; step < LANES; step *= 2) {
        lanes from[LANES];
        memcpy(from, v, sizeof from);
        for (unsigned i = 0; i < LANES / 2; i++) {
            v[2 * i] = zip_low(from[i], from[i + LANES / 2]);
            v[2 * i + 1] = zip_high(from[i], from[i + LANES / 2]);
        }
    }
}

static inline void load_blocks(lanes m[LANES], const uint8_t *const inputs[LANES], size_t at)
{
    for (unsigned k = 0; k < LANES; k++)
        memcpy(&m[k], inputs[k] + at, sizeof *m);
    transpose(m);
}

static inline void store_values(uint32_t (*out)[8], const lanes cv[8], size_t n)
{
    lanes v[LANES] = { { 0 } };
    memcpy(v, cv, 8 * sizeof *cv);
    transpose(v);
    for (size_t k = 0; k < n; k++)
        memcpy(out[k], &v[k], sizeof *out);
}

#include "simd/blake3_lanes.h"

void heft_blake3_chunks_avx512(uint32_t (*out)[8], const uint8_t *p, size_t count, uint64_t number)
{
    hash_chunks(out, p, count, number);
}

void heft_blake3_parents_avx512(uint32_t (*cv)[8], size_t count)
{
    hash_parents(cv, count);
}
