/* cast_avx2.c - casts with an instruction of AVX2 or F16C, eight elements at a time.
 *
 * The instructions make every NaN quiet, and a number out of range becomes infinity or the least
 * integer.  The portable form decides otherwise, so this file leaves a batch with such an element
 * to the portable form. */
#include "simd/cast_kernels.h"

#include <immintrin.h>

enum { LANES = 8, BATCH = HEFT_KERNEL_BATCH };

static inline __m256i load_f32(const uint8_t *src, size_t i)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)(src + 4 * i));
}

static inline __m128i load_f16(const uint8_t *src, size_t i)
{
    return _mm_loadu_si128((const __m128i *)(const void *)(src + 2 * i));
}

/* Return true if the magnitude of an f32 of the batch is at least `least`, or if one is NaN. */
static inline bool has_large(const uint8_t *src, int32_t least)
{
    const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF), below = _mm256_set1_epi32(least - 1);
    __m256i large = _mm256_setzero_si256();
    for (size_t i = 0; i < BATCH; i += LANES) {
        __m256i f = _mm256_and_si256(load_f32(src, i), magnitude);
        large = _mm256_or_si256(large, _mm256_cmpgt_epi32(f, below));
    }
    return !_mm256_testz_si256(large, large);
}

static size_t f32_to_f16(uint8_t *dst, const uint8_t *src, size_t n)
{
    enum { LEAST_INFINITE = 0x477FF000 }; /* the least f32 that rounds to infinity */
    size_t at = 0;
    for (; at < n && !has_large(src + 4 * at, LEAST_INFINITE); at += BATCH)
        for (size_t i = at; i < at + BATCH; i += LANES)
            _mm_storeu_si128((__m128i *)(void *)(dst + 2 * i),
                             _mm256_cvtps_ph(_mm256_castsi256_ps(load_f32(src, i)),
                                             _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    return at;
}

static inline bool has_special_f16(const uint8_t *src)
{
    const __m128i exponent = _mm_set1_epi16(0x7C00);
    __m128i special = _mm_setzero_si128();
    for (size_t i = 0; i < BATCH; i += LANES) {
        __m128i h = _mm_and_si128(load_f16(src, i), exponent);
        special = _mm_or_si128(special, _mm_cmpeq_epi16(h, exponent));
    }
    return !_mm_testz_si128(special, special);
}

static size_t f16_to_f32(uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t at = 0;
    for (; at < n && !has_special_f16(src + 2 * at); at += BATCH)
        for (size_t i = at; i < at + BATCH; i += LANES)
            _mm256_storeu_ps((float *)(void *)(dst + 4 * i), _mm256_cvtph_ps(load_f16(src, i)));
    return at;
}

static size_t f32_to_i32(uint8_t *dst, const uint8_t *src, size_t n)
{
    enum { TWO_TO_31 = 0x4F000000 };
    size_t at = 0;
    for (; at < n && !has_large(src + 4 * at, TWO_TO_31); at += BATCH)
        for (size_t i = at; i < at + BATCH; i += LANES)
            _mm256_storeu_si256((__m256i *)(void *)(dst + 4 * i),
                                _mm256_cvttps_epi32(_mm256_castsi256_ps(load_f32(src, i))));
    return at;
}

static inline __m256i load_u8(const uint8_t *src, size_t i)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(src + i)));
}

static inline bool has_nan_e4m3fn(const uint8_t *src)
{
    const __m256i magnitude = _mm256_set1_epi8(0x7F);
    __m256i codes = _mm256_loadu_si256((const __m256i *)(const void *)src);
    __m256i nan = _mm256_cmpeq_epi8(_mm256_and_si256(codes, magnitude), magnitude);
    return !_mm256_testz_si256(nan, nan);
}

/* Convert codes without NaN.  No operation has a subnormal f32 as operand or result, which programs
 * may have told the processor to take for zero. */
static inline __m256i widen_e4m3fn(__m256i code)
{
    const __m256i least_normal = _mm256_set1_epi32(8), rebias = _mm256_set1_epi32(120 << 23);
    __m256i abs = _mm256_and_si256(code, _mm256_set1_epi32(0x7F));
    __m256i normal = _mm256_add_epi32(_mm256_slli_epi32(abs, 20), rebias);
    __m256 subnormal = _mm256_mul_ps(_mm256_cvtepi32_ps(abs), _mm256_set1_ps(0x1p-9F));
    __m256i f = _mm256_blendv_epi8(normal, _mm256_castps_si256(subnormal),
                                   _mm256_cmpgt_epi32(least_normal, abs));
    return _mm256_or_si256(f, _mm256_slli_epi32(_mm256_srli_epi32(code, 7), 31));
}

static size_t e4m3fn_to_f32(uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t at = 0;
    for (; at < n && !has_nan_e4m3fn(src + at); at += BATCH)
        for (size_t i = at; i < at + BATCH; i += LANES)
            _mm256_storeu_si256((__m256i *)(void *)(dst + 4 * i), widen_e4m3fn(load_u8(src, i)));
    return at;
}

const heft_cast_kernel heft_casts_avx2[] = {
    { HEFT_F16, HEFT_F32, f32_to_f16 },   { HEFT_F32, HEFT_F16, f16_to_f32 },
    { HEFT_I32, HEFT_F32, f32_to_i32 },   { HEFT_F32, HEFT_F8_E4M3FN, e4m3fn_to_f32 },
    { HEFT_UNTYPED, HEFT_UNTYPED, NULL },
};
