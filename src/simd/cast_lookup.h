/* cast_lookup.h - casts of types whose elements or pairs of elements are a byte, by a table. */
#ifndef HEFT_CAST_LOOKUP_H
#define HEFT_CAST_LOOKUP_H
#ifdef __AVX512VBMI__
#include <immintrin.h>
#endif

#include "base/kernels.h"
#include "model/number.h"

enum { HEFT_LOOKUP_BYTES = 16 }; /* the largest entry: two elements of a packed byte */

/* Copy entries of `size` bytes; the compiler makes a loop for each constant size. */
static inline void look_up(uint8_t *restrict dst, const uint8_t *restrict src, size_t n,
                           const uint8_t *restrict table, size_t size)
{
    for (size_t i = 0; i < n; i++)
        memcpy(dst + i * size, table + src[i] * size, size);
}

#ifdef __AVX512VBMI__

/* Look up 64 bytes in a table of 256 bytes. */
static inline __m512i look_up_64(const __m512i table[4], __m512i index)
{
    __m512i low = _mm512_permutex2var_epi8(table[0], index, table[1]);
    __m512i high = _mm512_permutex2var_epi8(table[2], index, table[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
}

static size_t look_up_bytes(uint8_t *restrict dst, const uint8_t *restrict src, size_t n,
                            const uint8_t *table)
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
static size_t look_up_pairs(uint8_t *restrict dst, const uint8_t *restrict src, size_t n,
                            const uint8_t *table)
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

/* Without shuffles across the table, look_up() does all. */
static size_t look_up_bytes(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t *table)
{
    (void)dst, (void)src, (void)n, (void)table;
    return 0;
}

static size_t look_up_pairs(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t *table)
{
    return look_up_bytes(dst, src, n, table);
}

#endif

static void look_up_entries(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t *table,
                            size_t size)
{
    size_t done = 0;
    switch (size) {
    case 1:
        done = look_up_bytes(dst, src, n, table);
        look_up(dst + done, src + done, n - done, table, 1);
        break;
    case 2:
        done = look_up_pairs(dst, src, n, table);
        look_up(dst + 2 * done, src + done, n - done, table, 2);
        break;
    case 4:
        look_up(dst, src, n, table, 4);
        break;
    case 8:
        look_up(dst, src, n, table, 8);
        break;
    default:
        look_up(dst, src, n, table, HEFT_LOOKUP_BYTES);
    }
}

/* Return the elements in a byte of type `from`; 0 if an element takes more. */
static uint32_t elements_in_byte(heft_dtype from)
{
    return from == HEFT_F4_E2M1 ? 2 : heft_dtype_size(from) == 1;
}

static bool heft_lookup_fits(heft_dtype to, heft_dtype from)
{
    uint32_t elements = elements_in_byte(from), size = heft_dtype_size(to);
    return (elements && size && size <= 8) || (elements == 1 && to == HEFT_F4_E2M1);
}

/* Cast the 256 bytes in turn by the portable form; `stride`: bytes for HEFT_KERNEL_BATCH of them,
 * which are less than a block. */
static void cast_every_byte(uint8_t *out, size_t stride, heft_dtype to, heft_dtype from)
{
    uint8_t bytes[256];
    for (uint32_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    for (uint32_t i = 0; i < sizeof bytes; i += HEFT_KERNEL_BATCH, out += stride)
        heft_dtype_cast(out, to, bytes + i, from, elements_in_byte(from) * HEFT_KERNEL_BATCH);
}

/* Look up a code for each byte; two codes share a byte. */
static size_t cast_to_halves(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from,
                             size_t n)
{
    uint8_t packed[128], entries[256], codes[HEFT_KERNEL_BLOCK];
    n -= n % HEFT_KERNEL_BLOCK;
    cast_every_byte(packed, HEFT_KERNEL_BATCH / 2, to, from);
    for (size_t i = 0; i < sizeof entries; i++)
        entries[i] = i % 2 ? packed[i / 2] >> 4 : packed[i / 2] & 15;
    for (size_t done = 0; done < n; done += HEFT_KERNEL_BLOCK, dst += HEFT_KERNEL_BLOCK / 2) {
        look_up_entries(codes, src + done, HEFT_KERNEL_BLOCK, entries, 1);
        for (size_t i = 0; i < HEFT_KERNEL_BLOCK / 2; i++)
            dst[i] = (uint8_t)(codes[2 * i] | codes[2 * i + 1] << 4);
    }
    return n;
}

/* Cast n elements, or whole blocks of the elements if the last byte has elements past the end. */
static size_t heft_cast_by_lookup(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from,
                                  size_t n)
{
    uint64_t table[256 * HEFT_LOOKUP_BYTES / sizeof(uint64_t)];
    uint32_t elements = elements_in_byte(from), size = elements * heft_dtype_size(to);
    if (!size)
        return cast_to_halves(dst, to, src, from, n);
    n -= n % elements ? n % HEFT_KERNEL_BLOCK : 0;
    cast_every_byte((uint8_t *)table, size * HEFT_KERNEL_BATCH, to, from);
    look_up_entries(dst, src, n / elements, (const uint8_t *)table, size);
    return n;
}

#endif
