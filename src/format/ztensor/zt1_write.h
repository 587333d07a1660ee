/* zt1_write.h - what planning and writing of zTensor 1.0, 1.1 and 1.2 share. */
#ifndef HEFT_ZT1_WRITE_H
#define HEFT_ZT1_WRITE_H
#include "format/ztensor/ztensor.h"

typedef struct heft_zt1_generation {
    const char *name, *version;
    bool is_10;      /* one element type for a tensor, and no attributes of tensors */
    bool any_value;  /* metadata is not only text */
    bool is_logical; /* "type" and "uncompressed_length" */
} heft_zt1_generation;

typedef struct heft_zt1_listing { /* numbers, sorted by name or key */
    uint32_t *at, count;
} heft_zt1_listing;

typedef struct heft_zt1_layout { /* heft_plan.priv */
    const heft_zt1_generation *g;
    heft_zt1_listing tensors, metadata;
    uint32_t *room; /* twice the most attributes or components that a tensor has */
} heft_zt1_layout;

/* Losses of tensors and of metadata; drops what cannot be carried. */
heft_status heft_zt1_plan_tensors(heft_plan *p);
heft_status heft_zt1_plan_metadata(heft_plan *p);
/* Bytes without a type are the tensor's elements, or bytes. */
heft_dtype heft_zt1_written_type(const heft_index *x, uint32_t t, uint32_t part);

#endif
