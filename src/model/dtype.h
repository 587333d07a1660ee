/* dtype.h - element types: sizes, numbers in and out. */
#ifndef HEFT_DTYPE_H
#define HEFT_DTYPE_H
#include <heft/heft.h>

extern const heft_dtype_info heft_dtype_rows[HEFT_DTYPES]; /* those that are there have a name */

/* Bytes of n elements, a block begun counting whole; false when that passes 64 bits. */
bool heft_dtype_bytes(uint64_t *out, heft_dtype t, uint64_t n);
/* Whole blocks that n elements fill; what is left over is not counted. */
uint64_t heft_dtype_blocks(heft_dtype t, uint64_t n);
/* Whether n elements fill whole blocks. */
bool heft_dtype_whole(heft_dtype t, uint64_t n);
/* Bytes of one element; 0 for packed types and none. */
static inline uint32_t heft_dtype_size(heft_dtype t)
{
    return t < HEFT_DTYPES && heft_dtype_rows[t].block_elems == 1 ? heft_dtype_rows[t].block_bytes
                                                                  : 0;
}
/* Bytes of one number: half an element for complex types, 1 where order does not matter. */
uint32_t heft_dtype_number(heft_dtype t);
const char *heft_dtype_name(heft_dtype t); /* "none" for HEFT_UNTYPED */

#endif
