/* names.h - hash tables from names to numbers, and checks for duplicate metadata keys. */
#ifndef HEFT_NAMES_H
#define HEFT_NAMES_H
#include "base/name_hash.h"
#include "model/index.h"

/* Access to the names, which the table does not copy. */
typedef struct heft_names_of {
    heft_str (*name)(const void *ctx, uint32_t i); /* return name i */
    const void *ctx;
} heft_names_of;

static inline uint32_t heft_names_hash(const heft_name_hash *key, heft_str name)
{
    return heft_name_hash_of(key, name.ptr, name.len);
}
/* Allocate an empty table for `count` names and release the old one; false: out of memory.  At most
 * half of the slots will be used, except above 2^31 names. */
bool heft_names_reserve(heft_memory *m, heft_names *n, uint32_t count);
/* Like heft_names_reserve(), but the caller clears the slots. */
bool heft_names_slots(heft_memory *m, heft_names *n, uint32_t count);
/* Reserve a slot for one name more than the `count` names 0 to count - 1 in the table; false: out
 * of memory.  Rebuilds the table each time the number of names has doubled. */
bool heft_names_grow(heft_memory *m, heft_names *n, const heft_name_hash *key, heft_names_of of,
                     uint32_t count);
/* Add name i and return HEFT_NONE, or return the number of an equal name in the table. */
uint32_t heft_names_add(heft_names *n, heft_names_of of, uint32_t hash, heft_str name, uint32_t i);
/* Map an existing name to i; no effect if the table does not have the name. */
void heft_names_replace(heft_names *n, heft_names_of of, uint32_t hash, heft_str name, uint32_t i);
/* Return the number of the name, or HEFT_NONE. */
uint32_t heft_names_find(const heft_names *n, heft_names_of of, uint32_t hash, heft_str name);
void heft_names_free(heft_memory *m, heft_names *n);

/* ---- files of bytes that a parser names, all of them shards of the index: shard_names.c ---- */

/* Return the number of the file in heft_global_offset(), or 0 if it was not added. */
uint32_t heft_names_find_file(const heft_names *files, const heft_index *x, heft_str file);
/* Add a shard of bytes, of unknown size, unless it was added; *number as above.  HEFT_E_LIMIT for
 * more than HEFT_MAX_SHARDS. */
heft_status heft_names_add_file(heft_names *files, heft_index *x, heft_str file, uint32_t *number);

#endif
