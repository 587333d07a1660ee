/* delta_foreign.h - changes as other programs store them. */
#ifndef HEFT_DELTA_FOREIGN_H
#define HEFT_DELTA_FOREIGN_H
#include "delta/delta_open.h"

typedef struct heft_delta_flat { /* positions in the tensor, and a unit for each */
    const uint8_t *indices;      /* little-endian */
    const uint8_t *values;
    uint64_t count;
    unsigned index_bytes; /* 4 or 8 */
} heft_delta_flat;

/* delta_load.c: return how many units a block has. */
uint32_t heft_delta_block_units(const heft_delta_loaded *l, uint64_t block);
/* delta_load.c: reserve the arrays for `changed` units. */
heft_status heft_delta_reserve(heft_delta_loaded *l, const heft_delta *d, uint64_t changed,
                               heft_error *err);
/* delta_load.c: take over positions, which must ascend. */
heft_status heft_delta_load_flat(heft_delta_loaded *l, const heft_delta *d, heft_str name,
                                 const heft_delta_flat *flat, heft_error *err);

/* delta_unpack.c: load what another program has stored. */
heft_status heft_delta_load_foreign(heft_delta_loaded *l, const heft_delta *d,
                                    const heft_delta_item *item, heft_error *err);

#endif
