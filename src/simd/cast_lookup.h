/* cast_lookup.h - casts of types whose elements or pairs of elements are a byte, by a table. */
#ifndef HEFT_CAST_LOOKUP_H
#define HEFT_CAST_LOOKUP_H
#include "base/kernels.h"
#include "model/number.h"
#include "simd/look_up_instructions.h"

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
    size_t done = 0;
    switch (size) {
    case 1:
        done = heft_look_up_bytes(dst, src, n, table);
        look_up(dst + done, src + done, n - done, table, 1);
        break;
    case 2:
        done = heft_look_up_pairs(dst, src, n, table);
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
