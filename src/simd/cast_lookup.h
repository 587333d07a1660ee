/* cast_lookup.h - casts of types whose elements or pairs of elements are a byte, by a table. */
#ifndef HEFT_CAST_LOOKUP_H
#define HEFT_CAST_LOOKUP_H
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

static void look_up_entries(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t *table,
                            size_t size)
{
    switch (size) {
    case 1:
        look_up(dst, src, n, table, 1);
        break;
    case 2:
        look_up(dst, src, n, table, 2);
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
    look_up_entries(dst, src, n / elements, entries, size);
    return n;
}

#endif
