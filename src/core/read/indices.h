/* indices.h - index numbers of sparse tensors, and the search for duplicate entries. */
#ifndef HEFT_INDICES_H
#define HEFT_INDICES_H
#include "core/read/file.h"

/* Return the bytes of an index of type t, or 0 if t cannot be an index.  HEFT_UNTYPED: u64. */
uint32_t heft_index_size(heft_dtype t);
/* Read the index of type t at p.  A negative index becomes UINT64_MAX, always out of bounds. */
uint64_t heft_index_value(const uint8_t *p, heft_dtype t);

/* Row-major element numbers of a sparse tensor's entries, for up to a few million entries. */
typedef struct heft_positions {
    uint64_t *linear; /* element number by entry; NULL: duplicates are not searched */
    uint32_t *ids, *scratch, count;
} heft_positions;
/* Return false if out of memory. */
bool heft_positions_open(heft_positions *s, const heft_allocator *al, uint64_t entries,
                         const uint64_t *dims, uint32_t rank);
/* Add the index of an entry in the next dimension, of size `dim`. */
static inline void heft_positions_add(heft_positions *s, uint64_t entry, uint64_t dim,
                                      uint64_t index)
{
    if (s->linear)
        s->linear[entry] = s->linear[entry] * dim + index;
}
/* After all indices were added: return the first entry, in ascending order of element numbers, with
 * the same element number as a previous entry, or HEFT_NONE. */
uint32_t heft_positions_repeated(heft_positions *s);
/* A zeroed s is harmless. */
void heft_positions_close(heft_positions *s, const heft_allocator *al);

#endif
