/* zt1_write.h - types shared by planning and writing of zTensor 1.0, 1.1 and 1.2. */
#ifndef HEFT_ZT1_WRITE_H
#define HEFT_ZT1_WRITE_H
#include "format/ztensor/ztensor.h"

typedef struct heft_zt1_generation {
    const char *name, *version;
    bool is_10;             /* One element type per tensor, and no tensor attributes. */
    bool has_any_value;     /* Metadata values may be other than text. */
    bool has_logical_types; /* Writes "type" and "uncompressed_length". */
} heft_zt1_generation;
enum { HEFT_ZT1_GENERATIONS = 3 };
extern const heft_zt1_generation heft_zt1_generations[HEFT_ZT1_GENERATIONS]; /* default first */

typedef struct heft_zt1_ids { /* ids sorted by name or key */
    uint32_t *at, count;
} heft_zt1_ids;

typedef struct heft_zt1_plan_state { /* heft_plan.priv */
    const heft_zt1_generation *g;
    heft_zt1_ids tensors, metadata;
    uint32_t
        *scratch; /* capacity: twice the maximum number of attributes or components of a tensor */
} heft_zt1_plan_state;

#endif
