/* names.c - open addressing with linear probing; slots hold numbers of names. */
#include "model/names.h"

#include "base/error.h"
#include "base/text.h"

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
