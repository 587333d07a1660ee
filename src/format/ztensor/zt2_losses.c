/* zt2_losses.c - reports what zTensor 2 cannot store of a model, tensor by tensor. */
#include "format/losses.h"
#include "format/ztensor/zt2.h"

static heft_status drop(heft_plan *p, uint32_t t, const char *rule, const char *why)
{
    heft_plan_drop(p, t);
    return heft_loss_report(p, HEFT_FAULT, rule, t, "%s cannot be stored in zTensor 2", why);
}

/* Objects have no type of their own: a reader takes that of the data, or of the values. */
static heft_status plan_type(heft_plan *p, uint32_t t)
{
    heft_dtype own = heft_ix_row(p->x, t)->dtype, read = HEFT_UNTYPED;
    uint32_t data = heft_ix_part_find(p->x, t, heft_lit("data"));
    if (data == HEFT_NONE)
        data = heft_ix_part_find(p->x, t, heft_lit("values"));
    if (data != HEFT_NONE)
        read = heft_ix_part_row_at(p->x, data)->dtype;
    if (own == read || !own || (own == HEFT_U8 && data != HEFT_NONE && !read))
        return HEFT_OK;
    return heft_loss_report(p, HEFT_WARNING, "ztensor/part-dtype", t,
                            "its element type %s is left out", heft_dtype_name(own));
}

static heft_status plan_parts(heft_plan *p, uint32_t t)
{
    heft_status st = HEFT_OK;
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    for (uint32_t k = 0; k < row->part_count && !st; k++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(p->x, row->first_part + k);
        const char *why = heft_zt2_bad_name(heft_ix_role(p->x, part->role));
        if (why)
            return drop(p, t, "ztensor/part-name", why);
        if (!heft_zt2_type_of(part->dtype)) {
            heft_plan_drop(p, t);
            return heft_loss_report(p, HEFT_FAULT, "ztensor/dtype", t,
                                    "element type %s cannot be stored in zTensor 2",
                                    heft_dtype_name(part->dtype));
        }
        if (!part->dtype)
            st = heft_loss_report(p, HEFT_NOTE, "ztensor/part-dtype", t,
                                  "the bytes of %q, which have no element type, are stored as u8",
                                  heft_ix_role(p->x, part->role));
    }
    return st;
}

static heft_status plan_values(heft_plan *p, uint32_t tensor)
{
    heft_value v;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; !st && heft_zt_value(&v, p->x, tensor, i); i = heft_value_next(&v, i)) {
        const char *why = heft_zt2_value_fault(p->x, tensor, i);
        if (why)
            st = heft_loss_report(p, HEFT_WARNING, "ztensor/attribute", tensor,
                                  "%s %q is left out: %s cannot be stored in zTensor 2",
                                  tensor == HEFT_NONE ? "metadata" : "attribute", v.key, why);
    }
    return st;
}

static heft_status plan_tensor(heft_plan *p, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    heft_str name = heft_ix_name(p->x, t), role;
    const char *why = heft_zt2_bad_name(name);
    uint64_t n;
    if (!why && !heft_str_is_utf8(name))
        why = "a name that is not UTF-8";
    if (!why && row->rank > HEFT_ZT2_RANK)
        why = "more than 64 dimensions";
    if (!why && !heft_product(&n, heft_ix_dims(p->x, t), row->rank))
        why = "a shape of more than 2^64 elements";
    if (!why && !row->part_count)
        why = "a tensor without parts";
    if (why)
        return drop(p, t, "ztensor/tensor", why);
    heft_status st = plan_parts(p, t);
    if (st || row->flags & HEFT_T_DROPPED)
        return st;
    st = heft_zt2_plan_indices(p, t);
    if (st)
        return st;
    why = heft_zt2_layout_fault(p->x, t, &role);
    if (why) {
        heft_plan_drop(p, t);
        return heft_loss_report(p, HEFT_FAULT, "ztensor/layout", t, "%s%s%s",
                                role.len ? role.ptr : "", role.len ? ": " : "", why);
    }
    bool strictly = true;
    if (p->source.in_order && (row->layout == HEFT_SPARSE_CSR || row->layout == HEFT_SPARSE_COO))
        st = p->source.in_order(p->source.ctx, t, &strictly);
    if (!st && !strictly) { /* what readers demand of the entries, and verify reports as a fault */
        heft_plan_drop(p, t);
        st = heft_plan_loss(p, HEFT_FAULT, "ztensor/entries", t,
                            "its entries are not in the order that zTensor 2 demands, or wrong");
    }
    if (!st && row->layout >= HEFT_LAYOUT_OTHER)
        st = plan_type(p, t);
    return !st && (row->attrs || row->flags) ? plan_values(p, t) : st;
}

heft_status heft_zt2_plan_model(heft_plan *p)
{
    heft_status st = heft_loss_parts(p, "ztensor/parts", NULL);
    if (!st)
        st = plan_values(p, HEFT_NONE);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++)
        st = plan_tensor(p, t);
    heft_plan_compact(p);
    return st;
}
