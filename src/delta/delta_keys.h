/* delta_keys.h - find metadata by key in logarithmic time. */
#ifndef HEFT_DELTA_KEYS_H
#define HEFT_DELTA_KEYS_H
#include "model/index.h"

typedef struct heft_delta_keys {
    const heft_index *x;
    uint32_t *sorted; /* numbers of values, by key */
    uint32_t count, capacity;
    heft_memory *mem;
    bool is_list; /* the values are the keys */
} heft_delta_keys;

/* List the values in a map, or the texts in a list, with the number `within`; HEFT_NONE: there is
 * none.  heft_delta_keys_free() must follow, even after false: out of memory. */
bool heft_delta_keys_within(heft_delta_keys *k, const heft_index *x, uint32_t within,
                            heft_memory *mem);
/* List the top-level metadata. */
bool heft_delta_keys_open(heft_delta_keys *k, const heft_index *x, heft_memory *mem);
/* Return the number of the value with that key, or HEFT_NONE. */
uint32_t heft_delta_keys_find(const heft_delta_keys *k, heft_str key);
void heft_delta_keys_free(heft_delta_keys *k);

#endif
