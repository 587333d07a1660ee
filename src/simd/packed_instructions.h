/* packed_instructions.h - loops over packed numbers for which some processors have instructions.
 * The flags of the compiler choose the form; each function returns how many elements are done, and
 * the caller does the others. */
#ifndef HEFT_PACKED_INSTRUCTIONS_H
#define HEFT_PACKED_INSTRUCTIONS_H
#include "simd/instructions.h"
#include "simd/look_up_instructions.h"

#ifdef __AVX512BW__

/* A word that is looked up keeps 4 bits of its own, since the table is there twice: the byte in the
 * low half of a double word, and again four bits below the high half. */
static inline __m512i spread_halves(__m512i bytes)
{
    return _mm512_or_si512(bytes, _mm512_slli_epi32(bytes, 12));
}

/* Look up codes of 4 bits, two in a byte. */
static inline size_t heft_look_up_codes(uint8_t *restrict out, const uint8_t *restrict p,
                                        const uint16_t *restrict table, size_t n)
{
    __m256i half = _mm256_loadu_si256((const __m256i *)table);
    __m512i twice = _mm512_broadcast_i64x4(half);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(p + i / 2)));
        _mm512_storeu_si512(out + 2 * i, _mm512_permutexvar_epi16(spread_halves(bytes), twice));
    }
    for (; i + 16 <= n; i += 16) {
        __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p + i / 2)));
        __m256i codes = _mm256_or_si256(bytes, _mm256_slli_epi32(bytes, 12));
        _mm256_storeu_si256((__m256i *)(out + 2 * i), _mm256_permutexvar_epi16(codes, half));
    }
    return i;
}

/* Return 16 numbers rounded to bf16.  A NaN of which no bit would be left gets the quiet bit. */
static inline __m512i round_16(const float *x)
{
    __m512 v = _mm512_loadu_ps(x);
    __m512i bits = _mm512_castps_si512(v);
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    __mmask16 bare = _mm512_mask_testn_epi32_mask(nan, bits, _mm512_set1_epi32(0x7F0000));
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i up = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF));
    bits = _mm512_mask_or_epi32(bits, bare, bits, _mm512_set1_epi32(0x400000));
    return _mm512_srli_epi32(_mm512_mask_add_epi32(bits, _knot_mask16(nan), bits, up), 16);
}

/* Round numbers to bf16. */
static inline size_t heft_put_bf16(uint8_t *restrict out, const float *restrict x, size_t n)
{
    const __m512i order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m512i both = _mm512_packus_epi32(round_16(x + i), round_16(x + i + 16));
        _mm512_storeu_si512(out + 2 * i, _mm512_permutexvar_epi64(order, both));
    }
    return i;
}

#elif defined(__AVX2__)

/* The table is looked up as two tables of bytes. */
static inline size_t heft_look_up_codes(uint8_t *restrict out, const uint8_t *restrict p,
                                        const uint16_t *restrict table, size_t n)
{
    const __m128i low = _mm_set1_epi8(15), byte = _mm_set1_epi16(255);
    __m128i a = _mm_loadu_si128((const __m128i *)table);
    __m128i b = _mm_loadu_si128((const __m128i *)(table + 8));
    __m128i lower = _mm_packus_epi16(_mm_and_si128(a, byte), _mm_and_si128(b, byte));
    __m128i upper = _mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8));
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i bytes = _mm_loadl_epi64((const __m128i *)(p + i / 2));
        __m128i codes = _mm_unpacklo_epi8(_mm_and_si128(bytes, low),
                                          _mm_and_si128(_mm_srli_epi16(bytes, 4), low));
        __m128i first = _mm_shuffle_epi8(lower, codes), second = _mm_shuffle_epi8(upper, codes);
        _mm_storeu_si128((__m128i *)(out + 2 * i), _mm_unpacklo_epi8(first, second));
        _mm_storeu_si128((__m128i *)(out + 2 * i + 16), _mm_unpackhi_epi8(first, second));
    }
    return i;
}

/* Return 8 numbers rounded to bf16.  A NaN of which no bit would be left gets the quiet bit. */
static inline __m256i round_8(const float *x)
{
    __m256 v = _mm256_loadu_ps(x), nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    __m256i bits = _mm256_castps_si256(v), bare = _mm256_set1_epi32(0x7F0000);
    bare = _mm256_cmpeq_epi32(_mm256_and_si256(bits, bare), _mm256_setzero_si256());
    __m256i quiet = _mm256_or_si256(bits, _mm256_and_si256(bare, _mm256_set1_epi32(0x400000)));
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    bits = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
    bits = _mm256_blendv_epi8(bits, quiet, _mm256_castps_si256(nan));
    return _mm256_srli_epi32(bits, 16);
}

static inline size_t heft_put_bf16(uint8_t *restrict out, const float *restrict x, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i both = _mm256_packus_epi32(round_8(x + i), round_8(x + i + 8));
        _mm256_storeu_si256((__m256i *)(out + 2 * i), _mm256_permute4x64_epi64(both, 0xD8));
    }
    return i;
}

#else

static inline size_t heft_look_up_codes(uint8_t *out, const uint8_t *p, const uint16_t *table,
                                        size_t n)
{
    (void)out, (void)p, (void)table, (void)n;
    return 0;
}

static inline size_t heft_put_bf16(uint8_t *out, const float *x, size_t n)
{
    (void)out, (void)x, (void)n;
    return 0;
}

#endif

#ifdef __AVX512VBMI__

/* Look up bytes in the two upper bytes of numbers whose other bytes are zero. */
static inline size_t heft_look_up_floats(float *restrict out, const uint8_t *restrict p, size_t n,
                                         const uint8_t *third, const uint8_t *top)
{
    __m512i low[4], high[4];
    size_t i = 0;
    for (size_t k = 0; k < 4; k++) {
        low[k] = _mm512_loadu_si512(third + 64 * k);
        high[k] = _mm512_loadu_si512(top + 64 * k);
    }
    for (; i + 64 <= n; i += 64) {
        uint8_t pairs[2][64];
        __m512i index = _mm512_loadu_si512(p + i);
        _mm512_storeu_si512(pairs[0], look_up_64(low, index));
        _mm512_storeu_si512(pairs[1], look_up_64(high, index));
        for (size_t k = 0; k < 64; k += 16) {
            __m512i a = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(pairs[0] + k)));
            __m512i b = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(pairs[1] + k)));
            __m512i bits = _mm512_or_si512(_mm512_slli_epi32(a, 16), _mm512_slli_epi32(b, 24));
            _mm512_storeu_si512(out + i + k, bits);
        }
    }
    return i;
}

#else

static inline size_t heft_look_up_floats(float *out, const uint8_t *p, size_t n,
                                         const uint8_t *third, const uint8_t *top)
{
    (void)out, (void)p, (void)n, (void)third, (void)top;
    return 0;
}

#endif

#endif
