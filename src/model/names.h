/* names.h - open-addressing tables from names to numbers, and what is built on them: finding
 * duplicates without comparing everything with everything. */
#ifndef HEFT_NAMES_H
#define HEFT_NAMES_H
#include "base/name_hash.h"
#include "model/index.h"

typedef struct heft_names_of { /* where the names are: number -> name */
    heft_str (*name)(const void *ctx, uint32_t i);
    const void *ctx;
} heft_names_of;

static inline uint32_t heft_names_hash(const heft_name_hash *key, heft_str name)
{
    return heft_name_hash_of(key, name.ptr, name.len);
}
/* Room for count names at a load of at most a half, beyond 2^31 names of at most one; existing entries are forgotten. */
bool heft_names_reserve(heft_memory *m, heft_names *n, uint32_t count);
/* The same, but the slots are to be cleared by the caller. */
bool heft_names_slots(heft_memory *m, heft_names *n, uint32_t count);
/* Room for one more than the `count` names that are in the table; it is built anew each time the names have doubled. */
bool heft_names_grow(heft_memory *m, heft_names *n, const heft_name_hash *key, heft_names_of of,
                     uint32_t count);
/* The number of the name that is there already, or HEFT_NONE when i was added. */
uint32_t heft_names_add(heft_names *n, heft_names_of of, uint32_t hash, heft_str name, uint32_t i);
/* A name that is there stands for i from now on. */
void heft_names_replace(heft_names *n, heft_names_of of, uint32_t hash, heft_str name, uint32_t i);
uint32_t heft_names_find(const heft_names *n, heft_names_of of, uint32_t hash, heft_str name);
void heft_names_free(heft_memory *m, heft_names *n);

/* Refuses a metadata key that occurs twice at the top level; for the end of a parse.  what names
 * the place in the message: "__metadata__". */
heft_status heft_meta_unique(heft_index *x, const char *what);
/* The same of the attributes of the tensor added last. */
heft_status heft_attrs_unique(heft_index *x, uint32_t tensor, const char *what);

#endif
