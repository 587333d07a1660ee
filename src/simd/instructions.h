/* instructions.h - loops for which some processors have instructions.  The flags of the compiler
 * choose the form; a caller does itself what a function leaves. */
#ifndef HEFT_INSTRUCTIONS_H
#define HEFT_INSTRUCTIONS_H
#include "base/compiler.h"
#include "base/kernels.h"
#include "model/float.h"

#ifdef __F16C__
#include <immintrin.h>

/* Return the f32 of an f16 that is not a NaN. */
static inline float heft_f16_number(uint16_t h)
{
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h)));
}

/* Return the f16 nearest to an f32 that is not a NaN. */
static inline uint16_t heft_f16_nearest(float v)
{
    __m128i half = _mm_cvtps_ph(_mm_set_ss(v), _MM_FROUND_TO_NEAREST_INT);
    return (uint16_t)_mm_cvtsi128_si32(half);
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

static inline uint16_t heft_f16_nearest(float v)
{
    return heft_f32_to_f16(heft_f32_bits(v));
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

#ifdef __AVX2__

static inline void put_bytes(float *out, __m128i n, float scale)
{
#ifdef __AVX512F__
    __m512 v = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(n));
    _mm512_storeu_ps(out, _mm512_mul_ps(v, _mm512_set1_ps(scale)));
#else
    __m256 v = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(n)), factor = _mm256_set1_ps(scale);
    __m256 w = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(n, 8)));
    _mm256_storeu_ps(out, _mm256_mul_ps(v, factor));
    _mm256_storeu_ps(out + 8, _mm256_mul_ps(w, factor));
#endif
}

/* Store 16 numbers multiplied by `scale`. */
static inline void heft_put_scaled(float *restrict out, const int8_t *restrict n, float scale)
{
    put_bytes(out, _mm_loadu_si128((const __m128i *)n), scale);
}

/* Store 16 numbers, at most 127, multiplied by `scale` and less `minimum`. */
static inline void heft_put_affine(float *restrict out, const uint8_t *restrict n, float scale,
                                   float minimum)
{
    float scaled[16];
    heft_put_scaled(scaled, (const int8_t *)n, scale);
    for (uint32_t i = 0; i < 16; i++)
        out[i] = scaled[i] - minimum;
}

/* Store the numbers that codes of 4 bits stand for, multiplied by `scale`: those of the lower
 * halves of `count` bytes, 8 or 16, and then those of the upper halves. */
static inline void heft_put_halves(float *restrict out, const uint8_t *restrict codes, size_t count,
                                   const int8_t *restrict table, float scale)
{
    __m128i numbers = _mm_loadu_si128((const __m128i *)table), low = _mm_set1_epi8(15);
    __m128i c = count == 16 ? _mm_loadu_si128((const __m128i *)codes)
                            : _mm_loadl_epi64((const __m128i *)codes);
    __m128i first = _mm_shuffle_epi8(numbers, _mm_and_si128(c, low));
    __m128i second = _mm_shuffle_epi8(numbers, _mm_and_si128(_mm_srli_epi16(c, 4), low));
    put_bytes(out, count == 16 ? first : _mm_unpacklo_epi64(first, second), scale);
    if (count == 16)
        put_bytes(out + 16, second, scale);
}

#else

/* Compilers that unroll the loop convert one number after the other; those that keep it convert
 * vectors. */
static inline void heft_put_scaled(float *restrict out, const int8_t *restrict n, float scale)
{
#pragma GCC unroll 1
    for (uint32_t i = 0; i < 16; i++)
        out[i] = scale * (float)n[i];
}

static inline void heft_put_affine(float *restrict out, const uint8_t *restrict n, float scale,
                                   float minimum)
{
#pragma GCC unroll 1
    for (uint32_t i = 0; i < 16; i++)
        out[i] = scale * (float)(int32_t)n[i] - minimum;
}

static inline void heft_put_halves(float *restrict out, const uint8_t *restrict codes, size_t count,
                                   const int8_t *restrict table, float scale)
{
    float scaled[16];
    heft_put_scaled(scaled, table, scale);
    for (size_t i = 0; i < count; i++) {
        out[i] = scaled[codes[i] & 15];
        out[i + count] = scaled[codes[i] >> 4];
    }
}

#endif

/* The numbers that codes of 2 or 3 bits stand for: table[code], repeated to 16 entries.
 * In bytes: (base + code * factor + ((code + add) >> shift & mask)) ^ flip. */
typedef struct heft_code_numbers {
    float table[16];
    uint8_t bits; /* bits of a code */
    uint8_t base, factor, add, shift, mask, flip;
} heft_code_numbers;

#define HEFT_FOUR_TIMES(a, b, c, d) a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d

#ifdef __AVX2__

typedef struct heft_coded {
    float *out;
} heft_coded;

static inline void heft_end_coded(const heft_coded *c, uint32_t groups)
{
    (void)c, (void)groups;
}

#endif

#ifdef __AVX512F__

/* Decode group k of a block, 16 numbers multiplied by `scale`; codes[0] has the first eight codes,
 * codes[1] the others, the first in the lowest bits.  Bit i of `signs` negates number i.  The block
 * begins at c->out and is complete after heft_end_coded(). */
static inline void heft_put_coded(heft_coded *c, uint32_t k, const heft_code_numbers *n,
                                  const uint32_t codes[2], uint32_t signs, float scale)
{
    __m512i step = _mm512_set1_epi32(n->bits);
    __m512i lane = _mm512_set_epi32(7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0);
    __m512i code = _mm512_mask_set1_epi32(_mm512_set1_epi32((int)codes[0]), 0xFF00, (int)codes[1]);
    /* The lookup ignores all but 4 bits; the table is the same for the bits above the code. */
    code = _mm512_srlv_epi32(code, _mm512_mullo_epi32(lane, step));
    __m512 v = _mm512_permutexvar_ps(code, _mm512_loadu_ps(n->table));
    __m512i product = _mm512_castps_si512(_mm512_mul_ps(v, _mm512_set1_ps(scale)));
    __m512i sign = _mm512_set1_epi32(INT32_MIN);
    product = _mm512_mask_xor_epi32(product, (__mmask16)signs, product, sign);
    _mm512_storeu_ps(c->out + 16 * k, _mm512_castsi512_ps(product));
}

#elif defined __AVX2__

static inline void heft_put_coded(heft_coded *c, uint32_t k, const heft_code_numbers *n,
                                  const uint32_t codes[2], uint32_t signs, float scale)
{
    __m256i lane = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    __m256i shift = _mm256_mullo_epi32(lane, _mm256_set1_epi32(n->bits));
    __m256 table = _mm256_loadu_ps(n->table), factor = _mm256_set1_ps(scale);
    for (uint32_t half = 0; half < 2; half++) {
        __m256i code = _mm256_srlv_epi32(_mm256_set1_epi32((int)codes[half]), shift);
        __m256i s = _mm256_sllv_epi32(_mm256_set1_epi32((int)(signs >> 8 * half)),
                                      _mm256_sub_epi32(_mm256_set1_epi32(31), lane));
        s = _mm256_and_si256(s, _mm256_set1_epi32(INT32_MIN));
        __m256 v = _mm256_mul_ps(_mm256_permutevar8x32_ps(table, code), factor);
        _mm256_storeu_ps(c->out + 16 * k + 8 * half, _mm256_xor_ps(v, _mm256_castsi256_ps(s)));
    }
}

#else

/* The groups are multiplied when the block is complete: vectors loaded from bytes that have just
 * been stored would wait for the stores. */
typedef struct heft_coded {
    float *out;
    int8_t numbers[HEFT_KERNEL_BLOCK];
    uint8_t signs[HEFT_KERNEL_BLOCK]; /* eight times the signs of eight numbers */
    float scales[HEFT_KERNEL_BLOCK / 16];
} heft_coded;

/* Return a number with the same byte eight times. */
static inline uint64_t eight_bytes(uint64_t byte)
{
    return UINT64_C(0x0101010101010101) * byte;
}

/* Spread eight codes of 2 or 3 bits to bytes. */
static inline uint64_t spread_codes(uint64_t v, uint32_t bits)
{
    uint64_t pair = (1u << 2 * bits) - 1, four = (1u << 4 * bits) - 1;
    v = (v | v << (32 - 4 * bits)) & (four | four << 32);
    v = (v | v << (16 - 2 * bits)) & pair * UINT64_C(0x0001000100010001);
    return (v | v << (8 - bits)) & eight_bytes((1u << bits) - 1);
}

static inline void heft_put_coded(heft_coded *c, uint32_t k, const heft_code_numbers *n,
                                  const uint32_t codes[2], uint32_t signs, float scale)
{
    for (uint32_t half = 0; half < 2; half++) {
        uint32_t at = 16 * k + 8 * half;
        uint64_t spread = spread_codes(codes[half], n->bits);
        uint64_t v = eight_bytes(n->base) + spread * n->factor;
        v += (spread + eight_bytes(n->add)) >> n->shift & eight_bytes(n->mask);
        heft_put_le64((uint8_t *)c->numbers + at, v ^ eight_bytes(n->flip));
        heft_put_le64(c->signs + at, eight_bytes(signs >> 8 * half & 255));
    }
    c->scales[k] = scale;
}

static inline void heft_end_coded(const heft_coded *c, uint32_t groups)
{
    static const uint8_t bits[16] = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
    for (uint32_t k = 0; k < groups; k++) {
        const int8_t *numbers = c->numbers + 16 * k;
        const uint8_t *signs = c->signs + 16 * k;
        int8_t n[16];
#pragma GCC unroll 1
        for (uint32_t i = 0; i < 16; i++) {
            int8_t minus = signs[i] & bits[i] ? -1 : 0;
            n[i] = (int8_t)((numbers[i] ^ minus) - minus);
        }
        heft_put_scaled(c->out + 16 * k, n, c->scales[k]);
    }
}

#endif

#endif
