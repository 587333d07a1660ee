/* cast_batch.h - HEFT_CAST_BATCH elements at a time, as f32 in the order of the host.  Bytes outside are little-endian; fewer
 * elements may be read and written, but the local arrays hold all. */
#ifndef HEFT_CAST_BATCH_H
#define HEFT_CAST_BATCH_H
#include <string.h>

#include "model/number.h"

enum { HEFT_CAST_BATCH = 32 }; /* a multiple of every packed block */

static inline bool heft_is_big_endian(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, sizeof first);
    return !first;
}

/* n <= HEFT_CAST_BATCH elements; whole blocks by a length the compiler knows. */
static inline void heft_cast_batch_copy(void *dst, const void *src, size_t n, size_t size)
{
    if (n == HEFT_CAST_BATCH)
        memcpy(dst, src, HEFT_CAST_BATCH * size);
    else
        memcpy(dst, src, n * size);
}

/* Between the order of the host and little-endian; nothing on most hosts. */
void heft_cast_batch_byteswap(void *array, uint32_t size);
/* Elements of 1, 2 or 4 bytes as they are. */
void heft_cast_batch_codes(uint32_t *out, uint32_t size, const uint8_t *src, size_t n);

/* Floats that f32 holds exactly, packed ones too; not f8_e8m0. */
bool heft_cast_batch_fits_f32(heft_dtype t);
/* Integers that f32 holds exactly, and truth values. */
bool heft_cast_batch_is_small_int(heft_dtype t);
/* Of a plain type that is one or the other. */
void heft_cast_batch_load(uint32_t *f, heft_dtype t, const uint8_t *src, size_t n);
/* From number `first` of the block at src on. */
void heft_cast_batch_load_packed(uint32_t *f, heft_dtype t, const uint8_t *src, uint32_t first,
                                 size_t n);

/* Counts, by kind, the numbers among HEFT_CAST_BATCH that are lost in a type for heft_cast_batch_store(); is_int: they are
 * integers. */
void heft_cast_batch_count(uint64_t lost[HEFT_CAST_LOSSES], heft_dtype to, const uint32_t *f,
                           bool is_int);
/* As any floating-point type but f8_e8m0, or an integer of at most 32 bits.  f is used up. */
void heft_cast_batch_store(uint8_t *dst, heft_dtype to, uint32_t *f, size_t n);
void heft_cast_batch_store_packed(uint8_t *dst, const uint32_t *codes, size_t n, heft_dtype t);
/* As doubles in the order of the host. */
void heft_cast_batch_f64(void *dst, const uint32_t *f, size_t n);

#endif
