/* cast_lookup.h - casts of types whose elements or pairs of elements are a byte, by a table. */
#ifndef HEFT_CAST_LOOKUP_H
#define HEFT_CAST_LOOKUP_H
#include "base/kernels.h"
#include "model/number.h"

enum { HEFT_LOOKUP_BYTES = 16 }; /* the largest entry: two elements of a packed byte */

static void look_up_1(uint8_t *restrict dst, const uint8_t *restrict src, size_t n,
                      const uint8_t *restrict table)
{
    const uint8_t *entries = (const void *)table;
    for (size_t i = 0; i < n; i++)
        memcpy(dst + i * sizeof(uint8_t), &entries[src[i]], sizeof(uint8_t));
}

static void look_up_2(uint8_t *restrict dst, const uint8_t *restrict src, size_t n,
                      const uint8_t *restrict table)
{
    const uint16_t *entries = (const void *)table;
    for (size_t i = 0; i < n; i++)
        memcpy(dst + i * sizeof(uint16_t), &entries[src[i]], sizeof(uint16_t));
}

static void look_up_4(uint8_t *restrict dst, const uint8_t *restrict src, size_t n,
                      const uint8_t *restrict table)
{
    const uint32_t *entries = (const void *)table;
    for (size_t i = 0; i < n; i++)
        memcpy(dst + i * sizeof(uint32_t), &entries[src[i]], sizeof(uint32_t));
}

static void look_up_8(uint8_t *restrict dst, const uint8_t *restrict src, size_t n,
                      const uint8_t *restrict table)
{
    const uint64_t *entries = (const void *)table;
    for (size_t i = 0; i < n; i++)
        memcpy(dst + i * sizeof(uint64_t), &entries[src[i]], sizeof(uint64_t));
}

static void look_up_16(uint8_t *restrict dst, const uint8_t *restrict src, size_t n,
                       const uint8_t *restrict table)
{
    for (size_t i = 0; i < n; i++)
        memcpy(dst + i * HEFT_LOOKUP_BYTES, table + src[i] * (size_t)HEFT_LOOKUP_BYTES,
               HEFT_LOOKUP_BYTES);
}

/* Return the elements in a byte of type `from`; 0 if an element takes more. */
static uint32_t elements_in_byte(heft_dtype from)
{
    return from == HEFT_F4_E2M1 ? 2 : heft_dtype_size(from) == 1;
}

static bool heft_lookup_fits(heft_dtype to, heft_dtype from)
{
    return elements_in_byte(from) && heft_dtype_size(to) && heft_dtype_size(to) <= 8;
}

/* Cast n elements, or whole blocks of the elements if the last byte has elements past the end; the
 * table is made by the portable form. */
static size_t heft_cast_by_lookup(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from,
                                  size_t n)
{
    uint64_t table[256 * HEFT_LOOKUP_BYTES / sizeof(uint64_t)];
    uint8_t bytes[256], *entries = (uint8_t *)table;
    uint32_t elements = elements_in_byte(from), size = elements * heft_dtype_size(to);
    n -= n % elements ? n % HEFT_KERNEL_BLOCK : 0;
    for (uint32_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    for (uint32_t i = 0; i < sizeof bytes; i += HEFT_KERNEL_BATCH) /* less than a block */
        heft_dtype_cast(entries + i * size, to, bytes + i, from, elements * HEFT_KERNEL_BATCH);
    (size == 1   ? look_up_1
     : size == 2 ? look_up_2
     : size == 4 ? look_up_4
     : size == 8 ? look_up_8
                 : look_up_16)(dst, src, n / elements, entries);
    return n;
}

#endif
