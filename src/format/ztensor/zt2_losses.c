/* zt2_losses.c - reports everything in a model that zTensor 2 cannot store. */
#include "format/losses.h"
#include "format/ztensor/zt2.h"

static heft_status drop(heft_plan *p, uint32_t t, const char *rule, const char *reason)
{
    heft_plan_drop(p, t);
    return heft_loss_report(p, HEFT_FAULT, rule, t, "%s cannot be stored in zTensor 2", reason);
}

/* Objects have no element type of their own: readers use that of "data" or "values". */
static heft_status plan_type(heft_plan *p, uint32_t t)
{
    heft_dtype tensor_type = heft_ix_row(p->x, t)->dtype, readable_type = HEFT_UNTYPED;
    uint32_t data = heft_ix_part_find(p->x, t, heft_lit("data"));
    if (data == HEFT_NONE)
        data = heft_ix_part_find(p->x, t, heft_lit("values"));
    if (data != HEFT_NONE)
        readable_type = heft_ix_part_row_at(p->x, data)->dtype;
    if (tensor_type == readable_type ||
        (tensor_type == HEFT_U8 && data != HEFT_NONE && !readable_type))
        return HEFT_OK;
    if (!tensor_type)
        return heft_loss_report(p, HEFT_NOTE, "ztensor/part-dtype", t,
                                "the tensor, which has no element type, is read as %s",
                                heft_dtype_name(readable_type));
    return heft_loss_report(p, HEFT_WARNING, "ztensor/part-dtype", t, "element type %s is left out",
                            heft_dtype_name(tensor_type));
}

static heft_status plan_parts(heft_plan *p, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    for (uint32_t k = 0; k < row->part_count; k++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(p->x, row->first_part + k);
        const char *reason = heft_zt2_bad_name(heft_ix_role(p->x, part->role));
        if (reason)
            return drop(p, t, "ztensor/part-name", reason);
        if (!heft_zt2_type_of(part->dtype)) {
            heft_plan_drop(p, t);
            return heft_loss_report(p, HEFT_FAULT, "ztensor/dtype", t,
                                    "element type %s cannot be stored in zTensor 2",
                                    heft_dtype_name(part->dtype));
        }
        if (!part->dtype)
            HEFT_TRY(
                heft_loss_report(p, HEFT_NOTE, "ztensor/part-dtype", t,
                                 "the bytes of %q, which have no element type, are stored as u8",
                                 heft_ix_role(p->x, part->role)));
    }
    return HEFT_OK;
}

static heft_status plan_values(heft_plan *p, uint32_t tensor)
{
    heft_value v;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; !st && heft_zt_value(&v, p->x, tensor, i); i = heft_value_next(&v, i)) {
        const char *reason = heft_zt2_value_fault(p->x, tensor, i);
        if (reason)
            st = heft_loss_report(p, HEFT_WARNING, "ztensor/attribute", tensor,
                                  "%s %q is left out: %s cannot be stored in zTensor 2",
                                  tensor == HEFT_NONE ? "metadata" : "attribute", v.key, reason);
    }
    return st;
}

/* Readers may rely on valid values, and verify reports a fault. */
static heft_status plan_data(heft_plan *p, uint32_t t)
{
    heft_value_rule broken = HEFT_ANY_VALUE;
    heft_status st = p->source.check_values ? p->source.check_values(p->source.ctx, t, &broken)
                                            : HEFT_OK;
    if (st || !broken)
        return st;
    heft_plan_drop(p, t);
    return heft_loss_report(p, HEFT_FAULT, heft_value_rule_name(broken), t,
                            "%s, which zTensor 2 does not allow", heft_value_rule_text(broken));
}

static heft_status plan_tensor(heft_plan *p, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    heft_str name = heft_ix_name(p->x, t), role;
    const char *reason = heft_zt2_bad_name(name);
    uint64_t n;
    if (!reason && !heft_str_is_utf8(name))
        reason = "a name that is not UTF-8";
    if (!reason && row->rank > HEFT_ZT2_MAX_RANK)
        reason = "more than 64 dimensions";
    if (!reason && !heft_product(&n, heft_ix_dims(p->x, t), row->rank))
        reason = "a shape of more than 2^64 elements";
    if (!reason && !row->part_count)
        reason = "a tensor without parts";
    if (reason)
        return drop(p, t, "ztensor/tensor", reason);
    heft_status st = plan_parts(p, t);
    if (st || row->flags & HEFT_T_DROPPED)
        return st;
    st = heft_zt2_plan_indices(p, t);
    if (st)
        return st;
    reason = heft_zt2_layout_fault(p->x, t, &role);
    if (reason) {
        heft_plan_drop(p, t);
        return heft_loss_report(p, HEFT_FAULT, "ztensor/layout", t, "%s%s%s",
                                role.len ? role.ptr : "", role.len ? ": " : "", reason);
    }
    bool strictly = true;
    if (p->source.is_sorted && (row->layout == HEFT_SPARSE_CSR || row->layout == HEFT_SPARSE_COO))
        st = p->source.is_sorted(p->source.ctx, t, &strictly);
    if (!st && !strictly) { /* readers require sorted entries, and verify reports a fault */
        heft_plan_drop(p, t);
        st = heft_plan_loss(
            p, HEFT_FAULT, "ztensor/entries", t,
            "sparse entries are invalid, or not in the order that zTensor 2 requires");
    }
    if (!st)
        st = plan_data(p, t);
    if (!st && row->layout >= HEFT_LAYOUT_OTHER)
        st = plan_type(p, t);
    return !st && (row->attrs || row->flags) ? plan_values(p, t) : st;
}

heft_status heft_zt2_plan_model(heft_plan *p)
{
    heft_status st = heft_loss_parts(p, "ztensor/parts", NULL, "zTensor 2");
    if (!st)
        st = plan_values(p, HEFT_NONE);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++)
        st = plan_tensor(p, t);
    heft_plan_compact(p);
    return st;
}
