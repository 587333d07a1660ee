/* names.c - open addressing with linear probing; slots hold numbers of names. */
#include "model/names.h"

#include "base/error.h"
#include "base/text.h"
#include "model/values.h"

bool heft_names_slots(heft_memory *m, heft_names *n, uint32_t count)
{
    uint64_t slots = HEFT_IS_SMALL ? 2 : 16;
    while (slots < 2ull * count && slots < 1ull << 32) /* the mask has 32 bits */
        slots *= 2;
    if (slots > SIZE_MAX / sizeof *n->slots || (HEFT_IS_SMALL && count > INT16_MAX))
        return false;
    heft_names_free(m, n);
    n->slots = heft_mem_alloc(m, (size_t)slots * sizeof *n->slots);
    if (!n->slots)
        return false;
    n->mask = (uint32_t)(slots - 1);
    n->count = 0;
    return true;
}

bool heft_names_reserve(heft_memory *m, heft_names *n, uint32_t count)
{
    if (!heft_names_slots(m, n, count))
        return false;
    memset(n->slots, 0, ((size_t)n->mask + 1) * sizeof *n->slots);
    return true;
}

uint32_t heft_names_add(heft_names *n, heft_names_of of, uint32_t hash, heft_str name, uint32_t i)
{
    uint32_t at = hash & n->mask;
    for (; n->slots[at]; at = (at + 1) & n->mask)
        if (heft_str_eq(of.name(of.ctx, n->slots[at] - 1), name))
            return n->slots[at] - 1;
    n->slots[at] = (heft_slot)(i + 1);
    n->count++;
    return HEFT_NONE;
}

bool heft_names_grow(heft_memory *m, heft_names *n, const heft_name_hash *key, heft_names_of of,
                     uint32_t count)
{
    if (n->slots && 2ull * (count + 1ull) <= n->mask)
        return true;
    if (!heft_names_reserve(m, n, 2 * count + 1))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        heft_str name = of.name(of.ctx, i);
        heft_names_add(n, of, heft_names_hash(key, name), name, i);
    }
    return true;
}

void heft_names_replace(heft_names *n, heft_names_of of, uint32_t hash, heft_str name, uint32_t i)
{
    uint32_t at = hash & n->mask;
    while (n->slots[at] && !heft_str_eq(of.name(of.ctx, n->slots[at] - 1), name))
        at = (at + 1) & n->mask;
    if (n->slots[at])
        n->slots[at] = (heft_slot)(i + 1);
}

uint32_t heft_names_find(const heft_names *n, heft_names_of of, uint32_t hash, heft_str name)
{
    if (!n->slots)
        return HEFT_NONE;
    for (uint32_t at = hash & n->mask; n->slots[at]; at = (at + 1) & n->mask)
        if (heft_str_eq(of.name(of.ctx, n->slots[at] - 1), name))
            return n->slots[at] - 1;
    return HEFT_NONE;
}

void heft_names_free(heft_memory *m, heft_names *n)
{
    heft_mem_free(m, n->slots, ((size_t)n->mask + 1) * sizeof *n->slots);
    *n = (heft_names){ NULL, 0, 0 };
}

static heft_str value_key(const void *ctx, uint32_t i)
{
    return heft_ix_value(ctx, i)->key;
}

static heft_str attr_key(const void *ctx, uint32_t i)
{
    return ((const heft_ix_attr_row *)((const heft_index *)ctx)->attrs.ptr)[i].value.key;
}

static uint32_t attr_next(const heft_index *x, uint32_t i)
{
    const heft_value *v = &((const heft_ix_attr_row *)x->attrs.ptr)[i].value;
    return heft_value_next(v, i);
}

/* Check the keys of values [i, end); next() skips the children of containers. */
static heft_status unique(heft_index *x, heft_names_of of, uint32_t i, uint32_t end,
                          uint32_t (*next)(const heft_index *x, uint32_t i), const char *what)
{
    heft_names seen = { NULL, 0, 0 };
    heft_status st = HEFT_OK;
    uint32_t count = 0;
    for (uint32_t k = i; k < end; k = next(x, k))
        count++;
    if (count < 2)
        return HEFT_OK;
    if (!heft_names_reserve(&x->mem, &seen, count))
        return heft_error_no_memory(x->err, "to compare metadata keys");
    for (; i < end && !st; i = next(x, i)) {
        heft_str key = of.name(of.ctx, i);
        if (heft_names_add(&seen, of, heft_names_hash(&x->key, key), key, i) != HEFT_NONE)
            st = heft_error_set(x->err, HEFT_E_FORMAT, heft_ix_offset_of(x, key),
                                "key %q occurs twice in %s", key, what);
    }
    heft_names_free(&x->mem, &seen);
    return st;
}

heft_status heft_meta_unique(heft_index *x, const char *what)
{
    heft_names_of of = { value_key, x };
    uint32_t dropped;
    heft_status st = unique(x, of, 0, x->values.len, heft_ix_value_next, what);
    if (!st || heft_ix_forgive(x, st, "duplicate-key"))
        return st;
    return heft_ix_meta_keep_last(x, HEFT_NONE, &dropped);
}

heft_status heft_attrs_unique(heft_index *x, uint32_t tensor, const char *what)
{
    heft_names_of of = { attr_key, x };
    uint32_t first = heft_ix_row(x, tensor)->attrs;
    return first ? unique(x, of, first - 1, x->attrs.len, attr_next, what) : HEFT_OK;
}
