/* look_up_instructions.h - lookups of bytes in a table of 256 entries, for which some processors
 * have instructions.  The flags of the compiler choose the form; a caller does itself what a
 * function leaves. */
#ifndef HEFT_LOOK_UP_INSTRUCTIONS_H
#define HEFT_LOOK_UP_INSTRUCTIONS_H
#include <stddef.h>
#include <stdint.h>

#ifdef __AVX2__
#include <immintrin.h>

/* Make a table of the first bytes of the entries, and one of the second. */
static inline void split_pairs(uint8_t halves[2][256], const uint8_t *table)
{
    for (size_t i = 0; i < 256; i++) {
        halves[0][i] = table[2 * i];
        halves[1][i] = table[2 * i + 1];
    }
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
    split_pairs(halves, table);
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

#elif defined __AVX2__

#ifdef __AVX512VL__
enum { HAS_32_REGISTERS = 1 };
#else
enum { HAS_32_REGISTERS = 0 };
#endif

/* Return the 16 bytes of row k of a table, twice. */
static inline __m256i row_of(const uint8_t *table, size_t k)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(table + 16 * k)));
}

/* Add row k to the result of those bytes that it has: an index of the row is 0 to 15, and an index
 * with its highest bit set looks up 0.  Then make row k + 1 the next. */
static inline __m256i add_row(__m256i result, __m256i row, __m256i index)
{
    __m256i code = _mm256_adds_epu8(index, _mm256_set1_epi8(0x70));
    return _mm256_or_si256(result, _mm256_shuffle_epi8(row, code));
}

static inline __m256i next_row(__m256i index)
{
    return _mm256_sub_epi8(index, _mm256_set1_epi8(16));
}

static inline size_t heft_look_up_bytes(uint8_t *restrict dst, const uint8_t *restrict src,
                                        size_t n, const uint8_t *table)
{
    const size_t whole = n / 64 * 64;
    for (size_t i = 0; i < whole; i += 64) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(src + i)), first = _mm256_setzero_si256();
        __m256i b = _mm256_loadu_si256((const __m256i *)(src + i + 32)), second = first;
        for (size_t k = 0; k < 16; k++, a = next_row(a), b = next_row(b)) {
            __m256i row = row_of(table, k);
            first = add_row(first, row, a);
            second = add_row(second, row, b);
        }
        _mm256_storeu_si256((__m256i *)(dst + i), first);
        _mm256_storeu_si256((__m256i *)(dst + i + 32), second);
    }
    return whole;
}

static inline size_t heft_look_up_pairs(uint8_t *restrict dst, const uint8_t *restrict src,
                                        size_t n, const uint8_t *table)
{
    const size_t whole = n / 32 * 32;
    uint8_t halves[2][256];
    if (!HAS_32_REGISTERS) /* with 16 it takes longer than a loop */
        return 0;
    split_pairs(halves, table);
    for (size_t i = 0; i < whole; i += 32) {
        __m256i index = _mm256_loadu_si256((const __m256i *)(src + i));
        __m256i first = _mm256_setzero_si256(), second = first;
        for (size_t k = 0; k < 16; k++, index = next_row(index)) {
            first = add_row(first, row_of(halves[0], k), index);
            second = add_row(second, row_of(halves[1], k), index);
        }
        __m256i low = _mm256_unpacklo_epi8(first, second);
        __m256i high = _mm256_unpackhi_epi8(first, second);
        __m256i *to = (__m256i *)(dst + 2 * i);
        _mm256_storeu_si256(to, _mm256_permute2x128_si256(low, high, 0x20));
        _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(low, high, 0x31));
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
