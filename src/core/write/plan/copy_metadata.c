/* copy_metadata.c - copy the attributes of a tensor to the planned model. */
#include "core/write/plan/plan.h"

/* Attributes that repeat the identity, in files that store identities as ordinary attributes. */
static bool is_identity(heft_str key)
{
    return heft_str_is(key, "burn.param_id") || heft_str_is(key, "gptrs.base_id") ||
           heft_str_is(key, "gptrs.requires_grad");
}

heft_status heft_copy_attributes(heft_planner *p, const heft_index *from, uint32_t id,
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
            st = heft_ix_copy_value(&p->x, from, k, id);
        k = next;
    }
    return st;
}
