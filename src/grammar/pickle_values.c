/* pickle_values.c - accessors for the graph of values of a pickle. */
#include "base/text.h"
#include "grammar/pickle.h"

static const uint32_t *edges_at(const heft_pickle *p, uint32_t run)
{
    return (const uint32_t *)p->edges.ptr + run;
}

/* A run consists of the position of the next run, the number of items, and the items. */
static void enter_run(const heft_pickle *p, heft_pickle_items *i, uint32_t run)
{
    i->next = edges_at(p, run)[0];
    i->left = edges_at(p, run)[1];
    i->at = run + 2;
}

heft_pickle_items heft_pickle_items_of(const heft_pickle *p, uint32_t v)
{
    heft_pickle_items i = { .next = HEFT_NONE };
    const heft_pickle_value *container = heft_pickle_at(p, v);
    if (container->as.items.count)
        enter_run(p, &i, container->as.items.first);
    return i;
}

bool heft_pickle_next(const heft_pickle *p, heft_pickle_items *i, uint32_t *item)
{
    if (!i->left && i->next != HEFT_NONE)
        enter_run(p, i, i->next);
    if (!i->left)
        return false;
    i->left--;
    *item = *edges_at(p, i->at++);
    return true;
}

uint32_t heft_pickle_item(const heft_pickle *p, uint32_t v, uint32_t i)
{
    if (!heft_pickle_is(p, v, HEFT_PICKLE_TUPLE) || i >= heft_pickle_at(p, v)->as.items.count)
        return HEFT_NONE;
    return edges_at(
        p, heft_pickle_at(p, v)->as.items.first)[2 + i]; /* a tuple is created as a single run */
}

uint32_t heft_pickle_dict_get(const heft_pickle *p, uint32_t dict, const char *key)
{
    uint32_t k, v, found = HEFT_NONE;
    if (!heft_pickle_is(p, dict, HEFT_PICKLE_DICT))
        return HEFT_NONE;
    heft_pickle_items i = heft_pickle_items_of(p, dict);
    while (heft_pickle_next(p, &i, &k) && heft_pickle_next(p, &i, &v))
        if (heft_pickle_is(p, k, HEFT_PICKLE_TEXT) && heft_str_is(heft_pickle_at(p, k)->as.s, key))
            found = v;
    return found;
}

bool heft_pickle_u64(uint64_t *out, const heft_pickle *p, uint32_t v)
{
    if (!heft_pickle_is(p, v, HEFT_PICKLE_INT) || heft_pickle_at(p, v)->as.i < 0)
        return false;
    *out = (uint64_t)heft_pickle_at(p, v)->as.i;
    return true;
}

heft_str heft_pickle_module(const heft_pickle *p, uint32_t global)
{
    return heft_pickle_at(p, heft_pickle_at(p, global)->as.global.module)->as.s;
}

heft_str heft_pickle_name(const heft_pickle *p, uint32_t global)
{
    return heft_pickle_at(p, heft_pickle_at(p, global)->as.global.name)->as.s;
}

bool heft_pickle_is_global(const heft_pickle *p, uint32_t v, const char *module, const char *name)
{
    return heft_pickle_is(p, v, HEFT_PICKLE_GLOBAL) &&
           heft_str_is(heft_pickle_module(p, v), module) &&
           heft_str_is(heft_pickle_name(p, v), name);
}
