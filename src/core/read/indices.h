/* indices.h - the numbers in which sparse tensors say where their entries are, and entries in the same place. */
#ifndef HEFT_INDICES_H
#define HEFT_INDICES_H
#include "core/read/file.h"

/* Bytes of an index of that type, 0: it is none.  Bytes without a type are those of a u64. */
uint32_t heft_index_size(heft_dtype t);
/* The index of that type at p.  A negative one is as far out of bounds as can be. */
uint64_t heft_index_value(const uint8_t *p, heft_dtype t);

/* The places of the entries of a tensor, counted in elements of the dense one, among up to a few million entries. */
typedef struct heft_positions {
    uint64_t *linear; /* NULL: places are not compared */
    uint32_t *ids, *scratch, count;
} heft_positions;
/* false: no memory. */
bool heft_positions_open(heft_positions *s, const heft_allocator *al, uint64_t entries,
                         const uint64_t *dims, uint32_t rank);
/* The index of an entry in the next dimension, which is so large. */
static inline void heft_positions_add(heft_positions *s, uint64_t entry, uint64_t dim,
                                      uint64_t index)
{
    if (s->linear)
        s->linear[entry] = s->linear[entry] * dim + index;
}
/* Once all are known: the first entry, in the order of places, that is in the place of one before it; or HEFT_NONE. */
uint32_t heft_positions_repeated(heft_positions *s);
void heft_positions_close(heft_positions *s,
                          const heft_allocator *al); /* one of zeros is harmless */

#endif
