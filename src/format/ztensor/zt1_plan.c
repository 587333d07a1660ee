/* zt1_plan.c - decides which tensors and metadata zTensor 1.0, 1.1 and 1.2 can store. */
#include "format/losses.h"
#include "format/ztensor/zt1_write.h"
#include "model/unique_keys.h"
#include "model/values.h"

static bool is_sparse(const heft_ix_tensor_row *row)
{
    return row->layout == HEFT_SPARSE_CSR || row->layout == HEFT_SPARSE_COO;
}

/* ---- tensors ---- */

static bool has_type(const heft_zt1_generation *g, heft_dtype t)
{
    const heft_zt_type *type = heft_zt_type_of(t);
    return type && (*type->name || g->has_logical_types);
}

/* Return the part whose element type is the tensor's element type in 1.0. */
static uint32_t main_part(const heft_index *x, uint32_t t)
{
    return heft_ix_part_find(x, t, heft_zt_main_role(heft_ix_row(x, t)));
}

heft_dtype heft_zt1_written_type(const heft_index *x, uint32_t t, uint32_t part)
{
    heft_dtype type = heft_ix_part_row_at(x, part)->dtype;
    if (!type && part == main_part(x, t))
        type = heft_ix_row(x, t)->dtype;
    return type ? type : (heft_dtype)HEFT_U8;
}

/* Return the reason why a tensor cannot be stored, element types aside, or NULL. */
static const char *unsupported_reason(const heft_index *x, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    uint32_t data = main_part(x, t);
    uint64_t elements, bytes;
    if (!heft_str_is_utf8(heft_ix_name(x, t)))
        return "zTensor cannot store a name that is not UTF-8 (rename the tensor)";
    if (heft_str_has_nul(heft_ix_name(x, t)))
        return "zTensor cannot store a name with a NUL (rename the tensor)";
    if (row->part_count > HEFT_ZT_MAX_PARTS)
        return "zTensor 1 cannot store more than 256 components (use --format-version 2)";
    if (data == HEFT_NONE && row->layout < HEFT_LAYOUT_OTHER)
        return "data required by the layout is missing";
    if (row->layout == HEFT_DENSE && (!heft_product(&elements, heft_ix_dims(x, t), row->rank) ||
                                      !heft_dtype_bytes(&bytes, row->dtype, elements) ||
                                      bytes != heft_ix_part_row_at(x, data)->length))
        return "data length does not match the shape, as zTensor requires";
    return NULL;
}

static heft_status refuse_type(heft_plan *p, uint32_t t, heft_dtype type)
{
    const heft_zt1_plan_state *z = p->priv;
    heft_plan_drop(p, t);
    return heft_loss_report(p, HEFT_FAULT, "ztensor/dtype", t,
                            "element type %s cannot be stored in zTensor %s", heft_dtype_name(type),
                            z->g->name);
}

/* Report losses of parts of unknown layouts, and of extra parts of dense tensors. */
static heft_status plan_other_part(heft_plan *p, uint32_t t, uint32_t number)
{
    const heft_zt1_plan_state *z = p->priv;
    const heft_ix_part_row *part = heft_ix_part_row_at(p->x, number);
    heft_str role = heft_ix_role(p->x, part->role);
    if (z->g->is_10 && part->dtype && part->dtype != heft_ix_row(p->x, t)->dtype)
        return heft_loss_report(p, HEFT_WARNING, "ztensor/part-dtype", t,
                                "element type of %q, %s, is left out", role,
                                heft_dtype_name(part->dtype));
    if (z->g->is_10 || part->dtype)
        return HEFT_OK;
    heft_dtype own = heft_ix_row(p->x, t)->dtype;
    uint32_t main = main_part(p->x, t);
    bool is_main = main != HEFT_NONE && part == heft_ix_part_row_at(p->x, main);
    if (is_main && own && own != HEFT_U8)
        return heft_loss_report(p, HEFT_WARNING, "ztensor/part-dtype", t,
                                "element type %s is left out: the bytes of %q are stored as u8",
                                heft_dtype_name(own), role);
    return heft_loss_report(p, HEFT_NOTE, "ztensor/part-dtype", t,
                            "%q, which has no element type, is stored as %s", role,
                            heft_dtype_name(heft_zt1_written_type(p->x, t, number)));
}

/* 1.0 requires an element type for every tensor, and has no tensor attributes. */
static heft_status plan_tensor_type(heft_plan *p, uint32_t t)
{
    const heft_zt1_plan_state *z = p->priv;
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    if (!z->g->is_10 || row->layout < HEFT_LAYOUT_OTHER)
        return HEFT_OK;
    heft_value v;
    for (uint32_t i = 0; heft_ix_attribute(&v, p->x, t, i); i++) {
        if (!heft_str_is(v.key, "stored_dtype"))
            continue;
        HEFT_TRY(
            heft_loss_report(p, HEFT_FAULT, "ztensor/layout", t,
                             "layout %q is meaningless without the attribute stored_dtype, which "
                             "zTensor 1.0 cannot store (use --format-version 1.1, 1.2 or 2)",
                             heft_ix_layout(p->x, t)));
        break;
    }
    if (has_type(z->g, row->dtype))
        return HEFT_OK;
    if (row->dtype)
        return refuse_type(p, t, row->dtype);
    return heft_plan_loss(p, HEFT_NOTE, "ztensor/no-dtype", t,
                          "tensor without an element type is stored as uint8");
}

static heft_status plan_tensor(heft_plan *p, uint32_t t)
{
    const heft_zt1_plan_state *z = p->priv;
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    const char *reason = unsupported_reason(p->x, t);
    if (reason) {
        heft_plan_drop(p, t);
        return heft_plan_loss(p, HEFT_FAULT, "ztensor/tensor", t, reason);
    }
    heft_status st = plan_tensor_type(p, t);
    for (uint32_t i = 0; i < row->part_count && !st && !(row->flags & HEFT_T_DROPPED); i++) {
        uint32_t part = row->first_part + i;
        heft_ix_part_row *data = heft_ix_part_row_at(p->x, part);
        if (is_sparse(row) && !heft_str_is(heft_ix_role(p->x, data->role), "values")) {
            st = heft_loss_index_type(p, "ztensor/indices", t, data,
                                      HEFT_U64); /* readers accept only u64 */
            continue;
        }
        bool is_main = part == main_part(p->x, t) && row->layout < HEFT_LAYOUT_OTHER;
        heft_dtype type = heft_zt1_written_type(p->x, t, part);
        st = is_main ? HEFT_OK : plan_other_part(p, t, part);
        if (!st && (is_main || !z->g->is_10) && !has_type(z->g, type))
            st = refuse_type(p, t, type);
    }
    return st;
}

heft_status heft_zt1_plan_tensors(heft_plan *p)
{
    const heft_zt1_plan_state *z = p->priv;
    heft_status st = HEFT_OK;
    if (z->g->is_10)
        st = heft_loss_attributes(p, "ztensor/attributes", 0);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++)
        st = plan_tensor(p, t);
    if (!st)
        heft_plan_compact(p);
    return st;
}

/* ---- metadata ---- */

heft_status heft_zt1_plan_metadata(heft_plan *p)
{
    heft_zt1_plan_state *z = p->priv;
    const heft_text_losses losses = { "ztensor/metadata", "ztensor/metadata-text", "zTensor ",
                                      z->g->name };
    z->metadata.at = heft_plan_alloc(p, p->x->values.len * sizeof *z->metadata.at);
    if (!z->metadata.at)
        return HEFT_E_NOMEM;
    heft_status st = heft_meta_unique(p->x, "the metadata");
    for (uint32_t i = 0; i < p->x->values.len && !st; i = heft_ix_value_next(p->x, i)) {
        heft_value *v = heft_ix_value(p->x, i);
        bool kept = heft_str_is_utf8(v->key);
        if (!kept)
            st = heft_loss_report(p, HEFT_WARNING, "ztensor/metadata", HEFT_NONE,
                                  "metadata %q is left out: its key is not UTF-8", v->key);
        else if (!z->g->has_any_value)
            st = heft_loss_as_text(&kept, p, v, losses);
        if (kept)
            z->metadata.at[z->metadata.count++] = i;
    }
    return st;
}
