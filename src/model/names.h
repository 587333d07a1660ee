/* names.h - open-addressing hash tables from names to numbers, and the search for duplicate
 * names. */
#ifndef HEFT_NAMES_H
#define HEFT_NAMES_H
#include "base/name_hash.h"
#include "model/index.h"

typedef struct heft_names_of { /* callback that returns name number i */
    heft_str (*name)(const void *ctx, uint32_t i);
    const void *ctx;
} heft_names_of;

static inline uint32_t heft_names_hash(const heft_name_hash *key, heft_str name)
{
    return heft_name_hash_of(key, name.ptr, name.len);
}
/* Reserve slots for `count` names at a load of at most 1/2, or 1 past 2^31 names; remove existing
 * entries.  false: no memory. */
bool heft_names_reserve(heft_memory *m, heft_names *n, uint32_t count);
/* Like heft_names_reserve(), but the caller clears the slots. */
bool heft_names_slots(heft_memory *m, heft_names *n, uint32_t count);
/* Reserve a slot for one more than the `count` names in the table, which is rebuilt each time the
 * number of names has doubled.  false: no memory. */
bool heft_names_grow(heft_memory *m, heft_names *n, const heft_name_hash *key, heft_names_of of,
                     uint32_t count);
/* Add name number i; return HEFT_NONE, or the number of an equal name in the table. */
uint32_t heft_names_add(heft_names *n, heft_names_of of, uint32_t hash, heft_str name, uint32_t i);
/* Set the number of a name in the table to i. */
void heft_names_replace(heft_names *n, heft_names_of of, uint32_t hash, heft_str name, uint32_t i);
uint32_t heft_names_find(const heft_names *n, heft_names_of of, uint32_t hash, heft_str name);
void heft_names_free(heft_memory *m, heft_names *n);

/* HEFT_E_FORMAT if a metadata key occurs twice at the top level; called at the end of parsing.
 * `what` names the metadata in the message: "__metadata__". */
heft_status heft_meta_unique(heft_index *x, const char *what);
/* HEFT_E_FORMAT if an attribute of the tensor added last occurs twice. */
heft_status heft_attrs_unique(heft_index *x, uint32_t tensor, const char *what);

#endif
