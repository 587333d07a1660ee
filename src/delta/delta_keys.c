/* delta_keys.c - a sorted list of keys. */
#include "delta/delta_keys.h"

#include "base/bisect.h"
#include "base/sort.h"
#include "base/text.h"

/* Return the key that a value has, or is. */
static heft_str key_of(const heft_delta_keys *k, uint32_t i)
{
    const heft_value *v = heft_ix_value(k->x, i);
    if (!k->is_list)
        return v->key;
    return v->kind == HEFT_KIND_STR ? v->as.s : (heft_str){ NULL, 0 };
}

static bool key_before(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_str_order(key_of(ctx, a), key_of(ctx, b)) < 0;
}

/* List the values from `from` to `end`, without what they contain. */
static bool list(heft_delta_keys *k, uint32_t from, uint32_t end)
{
    uint32_t n = 0;
    for (uint32_t i = from; i < end; i = heft_ix_value_next(k->x, i))
        n++;
    k->capacity = 2 * n + 1;
    k->sorted = heft_mem_alloc(k->mem, k->capacity * sizeof *k->sorted);
    if (!k->sorted)
        return false;
    for (uint32_t i = from; i < end; i = heft_ix_value_next(k->x, i))
        k->sorted[k->count++] = i;
    heft_sort(k->sorted, k->sorted + n, n, key_before, k);
    return true;
}

bool heft_delta_keys_open(heft_delta_keys *k, const heft_index *x, heft_memory *mem)
{
    *k = (heft_delta_keys){ .x = x, .mem = mem };
    return list(k, 0, x->values.len);
}

bool heft_delta_keys_within(heft_delta_keys *k, const heft_index *x, uint32_t within,
                            heft_memory *mem)
{
    *k = (heft_delta_keys){ .x = x, .mem = mem };
    if (within == HEFT_NONE)
        return list(k, 0, 0);
    k->is_list = heft_ix_value(x, within)->kind == HEFT_KIND_LIST;
    return list(k, within + 1, heft_ix_value(x, within)->as.container.end);
}

uint32_t heft_delta_keys_find(const heft_delta_keys *k, heft_str key)
{
    heft_bisect b = { .end = k->count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, heft_str_order(key_of(k, k->sorted[b.mid]), key) < 0);
    if (b.first == k->count || !heft_str_eq(key_of(k, k->sorted[b.first]), key))
        return HEFT_NONE;
    return k->sorted[b.first];
}

void heft_delta_keys_free(heft_delta_keys *k)
{
    heft_mem_free(k->mem, k->sorted, k->capacity * sizeof *k->sorted);
}
