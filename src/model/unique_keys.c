/* unique_keys.c - keys that occur once: those of metadata, and the attributes of a tensor. */
#include "model/unique_keys.h"

#include "base/error.h"
#include "model/names.h"
#include "model/values.h"

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
