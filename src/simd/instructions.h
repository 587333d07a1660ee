/* instructions.h - loops for which some processors have instructions.  The flags of the compiler
 * choose the form; a caller does itself what a function leaves. */
#ifndef HEFT_INSTRUCTIONS_H
#define HEFT_INSTRUCTIONS_H
#include "base/kernels.h"
#include "model/float.h"

#ifdef __F16C__
#include <immintrin.h>

/* Return the f32 of an f16 that is not a NaN. */
static inline float heft_f16_number(uint16_t h)
{
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h)));
}

/* Convert a block of f16 to f32; return false if a value is NaN: the processor changes the payload
 * of a NaN, so that the caller converts the block again. */
static inline bool heft_f16_block_to_f32(uint32_t *restrict f, const uint16_t *restrict h)
{
    __m256 nan = _mm256_setzero_ps();
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i += 8) {
        __m256 v = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(h + i)));
        nan = _mm256_or_ps(nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
        _mm256_storeu_si256((__m256i *)(f + i), _mm256_castps_si256(v));
    }
    return !_mm256_movemask_ps(nan);
}

/* Convert a block of f32 to f16; return false if a value is NaN, as above. */
static inline bool heft_f32_block_to_f16(uint16_t *restrict h, const uint32_t *restrict f)
{
    __m256 nan = _mm256_setzero_ps();
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i += 8) {
        __m256 v = _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)(f + i)));
        nan = _mm256_or_ps(nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
        _mm_storeu_si128((__m128i *)(h + i), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    }
    return !_mm256_movemask_ps(nan);
}

#else

static inline float heft_f16_number(uint16_t h)
{
    return heft_f32_of(heft_f16_to_f32(h));
}

static inline bool heft_f16_block_to_f32(uint32_t *f, const uint16_t *h)
{
    (void)f, (void)h;
    return false;
}

static inline bool heft_f32_block_to_f16(uint16_t *h, const uint32_t *f)
{
    (void)h, (void)f;
    return false;
}

#endif

#ifdef __AVX512VBMI__

/* Look up 64 bytes in a table of 256 bytes. */
static inline __m512i look_up_64(const __m512i table[4], __m512i index)
{
    __m512i low = _mm512_permutex2var_epi8(table[0], index, table[1]);
    __m512i high = _mm512_permutex2var_epi8(table[2], index, table[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
}

static inline size_t heft_look_up_bytes(uint8_t *restrict dst, const uint8_t *restrict src,
                                        size_t n, const uint8_t *table)
{
    const size_t whole = n / 64 * 64;
    __m512i t[4];
    for (size_t i = 0; i < 4; i++)
        t[i] = _mm512_loadu_si512(table + 64 * i);
    for (size_t i = 0; i < whole; i += 64)
        _mm512_storeu_si512(dst + i, look_up_64(t, _mm512_loadu_si512(src + i)));
    return whole;
}

/* Look up the first and the second bytes of the entries in tables of their own. */
static inline size_t heft_look_up_pairs(uint8_t *restrict dst, const uint8_t *restrict src,
                                        size_t n, const uint8_t *table)
{
    const size_t whole = n / 64 * 64;
    uint8_t halves[2][256], mixed[2][64];
    __m512i t[2][4], mix[2];
    for (size_t i = 0; i < 256; i++) {
        halves[0][i] = table[2 * i];
        halves[1][i] = table[2 * i + 1];
    }
    for (size_t i = 0; i < 128; i++) /* index 64 and more: of the second bytes */
        mixed[i / 64][i % 64] = (uint8_t)(i / 2 + i % 2 * 64);
    for (size_t i = 0; i < 8; i++)
        t[i / 4][i % 4] = _mm512_loadu_si512(halves[i / 4] + 64 * (i % 4));
    for (size_t i = 0; i < 2; i++)
        mix[i] = _mm512_loadu_si512(mixed[i]);
    for (size_t i = 0; i < whole; i += 64) {
        __m512i index = _mm512_loadu_si512(src + i);
        __m512i first = look_up_64(t[0], index), second = look_up_64(t[1], index);
        for (size_t k = 0; k < 2; k++)
            _mm512_storeu_si512(dst + 2 * i + 64 * k,
                                _mm512_permutex2var_epi8(first, mix[k], second));
    }
    return whole;
}

#else

/* Look up n bytes in a table with an entry of one byte for each; return how many are done. */
static inline size_t heft_look_up_bytes(uint8_t *dst, const uint8_t *src, size_t n,
                                        const uint8_t *table)
{
    (void)dst, (void)src, (void)n, (void)table;
    return 0;
}

/* The same for entries of two bytes. */
static inline size_t heft_look_up_pairs(uint8_t *dst, const uint8_t *src, size_t n,
                                        const uint8_t *table)
{
    return heft_look_up_bytes(dst, src, n, table);
}

#endif

#endif
