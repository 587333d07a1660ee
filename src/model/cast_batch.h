/* cast_batch.h - conversion of up to HEFT_CAST_BATCH elements at a time to and from f32.
 *
 * Arrays of f32 and of codes are in the byte order of the host and always have HEFT_CAST_BATCH
 * entries.  Elements at src and dst are little-endian; n is the number of elements to read or
 * write, at most HEFT_CAST_BATCH. */
#ifndef HEFT_CAST_BATCH_H
#define HEFT_CAST_BATCH_H
#include <string.h>

#include "base/kernels.h"
#include "model/number.h"

enum {
    HEFT_CAST_BATCH = HEFT_KERNEL_BATCH
}; /* a multiple of the block size of every packed type */

static inline bool heft_is_big_endian(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, sizeof first);
    return !first;
}

/* Copy n elements of `size` bytes; the length of a full batch is a constant for the compiler. */
static inline void heft_cast_batch_copy(void *dst, const void *src, size_t n, size_t size)
{
    if (n == HEFT_CAST_BATCH)
        memcpy(dst, src, HEFT_CAST_BATCH * size);
    else
        memcpy(dst, src, n * size);
}

/* Convert an array between the byte order of the host and little-endian; does nothing on
 * little-endian hosts. */
void heft_cast_batch_byteswap(void *array, uint32_t size);
/* Load elements of 1, 2 or 4 bytes as unsigned integers. */
void heft_cast_batch_codes(uint32_t *out, uint32_t size, const uint8_t *src, size_t n);

/* Return true for plain and packed float types of up to 32 bits, except f8_e8m0: f32 represents all
 * of their values exactly. */
bool heft_cast_batch_fits_f32(heft_dtype t);
/* Return true for integers of up to 16 bits, which f32 represents exactly, and for bool. */
bool heft_cast_batch_is_small_int(heft_dtype t);
/* Load elements of a plain type for which one of the two functions above returns true. */
void heft_cast_batch_load(uint32_t *f, heft_dtype t, const uint8_t *src, size_t n);
/* Load elements of a packed type, from element `first` of the block at src on. */
void heft_cast_batch_load_packed(uint32_t *f, heft_dtype t, const uint8_t *src, uint32_t first,
                                 size_t n);

/* Add to lost[], by kind, how many of HEFT_CAST_BATCH elements a cast to type `to` loses; `to` is a
 * type that heft_cast_batch_store() supports.  is_int: the elements come from an integer type. */
void heft_cast_batch_count(uint64_t lost[HEFT_CAST_LOSSES], heft_dtype to, const uint32_t *f,
                           bool is_int);
/* Store elements as a floating-point type, except f8_e8m0, or as an integer type of at most 32
 * bits.  Overwrites f. */
void heft_cast_batch_store(uint8_t *dst, heft_dtype to, uint32_t *f, size_t n);
/* Store codes of a packed type from the beginning of a block on; fill the last block with zeros. */
void heft_cast_batch_store_packed(uint8_t *dst, const uint32_t *codes, size_t n, heft_dtype t);
/* Store elements as doubles in the byte order of the host. */
void heft_cast_batch_f64(void *dst, const uint32_t *f, size_t n);

#endif
