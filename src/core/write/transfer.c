/* transfer.c - metadata, attributes and parts of a file, into the model of another. */
#include "core/write/transfer.h"

/* Containers close where their ends say. */
heft_status heft_transfer_value(heft_planner *p, const heft_index *from, uint32_t i,
                                uint32_t source, uint32_t id)
{
    const heft_ix_attr_row *attrs = from->attrs.ptr;
    heft_value v = source == HEFT_NONE ? *heft_ix_value(from, i) : attrs[i].value;
    void (*close)(heft_index *) = source == HEFT_NONE ? heft_ix_meta_end : heft_ix_attr_end;
    uint32_t end = heft_value_next(&v, i), depth = 0;
    uint32_t open[HEFT_MAX_DEPTH];
    heft_status st = HEFT_OK;
    while (i < end && !st) {
        v = source == HEFT_NONE ? *heft_ix_value(from, i) : attrs[i].value;
        st = source == HEFT_NONE ? heft_ix_meta(&p->x, v) : heft_ix_attr(&p->x, id, v);
        if (!st && heft_value_nests(&v))
            open[depth++] = v.as.of.end;
        for (i++; !st && depth && open[depth - 1] == i; depth--)
            close(&p->x);
    }
    return st;
}

/* Attributes that a heft_identity stands for, in files that keep them as they keep any other. */
static bool is_identity(heft_str key)
{
    return heft_str_is(key, "burn.param_id") || heft_str_is(key, "gptrs.base_id") ||
           heft_str_is(key, "gptrs.requires_grad");
}

heft_status heft_transfer_attributes(heft_planner *p, const heft_index *from, uint32_t id,
                                     uint32_t source, bool cast, const heft_identity *identity)
{
    const heft_ix_tensor_row *row = heft_ix_row(from, source);
    const heft_ix_attr_row *attrs = from->attrs.ptr;
    heft_identity own = heft_ix_identity(from, source);
    heft_status st = heft_ix_identify(&p->x, id, identity ? identity : &own);
    if (cast)
        return st;
    uint32_t k = row->attrs ? row->attrs - 1 : from->attrs.len;
    while (k < from->attrs.len && attrs[k].tensor == source && !st) {
        const heft_value *v = &attrs[k].value;
        uint32_t next = heft_value_next(v, k);
        if (!identity || !is_identity(v->key))
            st = heft_transfer_value(p, from, k, source, id);
        k = next;
    }
    return st;
}
