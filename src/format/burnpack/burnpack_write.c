/* burnpack_write.c - planning and writing of Burnpacks.  burnpack.c shows the layout.
 *
 * The output follows Burn's own writer: names sorted bytewise, data in the order of the model,
 * CBOR in the shortest form, and no empty maps except "tensors".
 */
#include "format/burnpack/burnpack.h"
#include "format/losses.h"
#include "model/values.h"

/* Set *out to the output of put(), in the plan's arena, or to NULL if put() fails or `from` is
 * NULL. */
static heft_status encode(heft_plan *p, heft_str *out, heft_str from, uint32_t generation,
                          bool (*put)(heft_out *o, heft_str from, uint32_t generation))
{
    heft_out o = heft_out_counting();
    *out = (heft_str){ NULL, 0 };
    if (!from.ptr || !put(&o, from, generation))
        return HEFT_OK;
    o = (heft_out){ .cap = (size_t)o.total, .buf = heft_plan_alloc(p, (size_t)o.total) };
    if (!o.buf)
        return HEFT_E_NOMEM;
    put(&o, from, generation);
    *out = (heft_str){ (const char *)o.buf, o.len };
    return HEFT_OK;
}

static bool put_stored_dtype(heft_out *o, heft_str stored, uint32_t generation)
{
    (void)generation;
    return heft_burnpack_put_stored_dtype(o, stored);
}

static bool put_scheme(heft_out *o, heft_str cbor, uint32_t generation)
{
    heft_burnpack_put_scheme(o, cbor, generation);
    return true;
}

static bool is_quantized_type(heft_plan *p, heft_str cbor)
{
    heft_cbor c = heft_cbor_open(cbor.ptr, cbor.len, 0, HEFT_CBOR_DEPTH, p->arena, NULL);
    return heft_cbor_next(&c) == HEFT_CBOR_MAP && c.u == 1 && !c.flags &&
           heft_cbor_next(&c) == HEFT_CBOR_TEXT && heft_str_is(c.str, "QFloat") &&
           !heft_cbor_skip(&c, heft_cbor_next(&c)) && heft_cbor_next(&c) == HEFT_CBOR_MAP_END &&
           c.p == c.end;
}

/* Set s->cbor and s->target_cbor.  Do nothing for the stored_dtype of the last call:
 * neighbouring tensors often have the same scheme. */
static heft_status update_encoding(heft_plan *p, heft_burnpack_scheme_plan *s, heft_str stored)
{
    if (s->stored.ptr && stored.ptr && heft_str_eq(s->stored, stored))
        return HEFT_OK;
    heft_status st = encode(p, &s->cbor, stored, 0, put_stored_dtype);
    if (!st && s->cbor.ptr && !is_quantized_type(p, s->cbor))
        s->cbor.ptr = NULL;
    s->target_cbor = s->cbor;
    if (!st && !p->existing)
        st = encode(p, &s->target_cbor, s->cbor, s->target->bit, put_scheme);
    s->stored = st ? (heft_str){ NULL, 0 } : stored;
    return st;
}

static heft_status report_unsupported(heft_plan *p, const heft_burnpack_scheme_plan *s, uint32_t t,
                                      uint32_t targets)
{
    enum { MAX_NAMES = 64 };
    char names[MAX_NAMES]; /* "0.22 or 0.22-pre.2" */
    if (!targets)
        return heft_loss_tensor(p, "burnpack/scheme", t,
                                "no known release of Burn reads its quantization scheme");
    heft_plan_drop(p, t);
    heft_out o = { .buf = (uint8_t *)names, .cap = sizeof names };
    for (uint32_t i = 0; i < HEFT_BURNPACK_GENERATIONS; i++) {
        const heft_burnpack_generation *g = &heft_burnpack_generations[i];
        if (!(g->bit & targets) || !g->can_write)
            continue;
        heft_out_str(&o, heft_lit(o.len ? " or " : ""));
        heft_out_str(&o, heft_lit(g->name));
    }
    heft_out_u8(&o, '\0');
    return heft_loss_report(p, HEFT_FAULT, "burnpack/scheme", t,
                            "Burn %s cannot read its quantization scheme, but Burn %s can (use "
                            "--format-version)",
                            s->target->name, names);
}

/* Drop a quantized tensor, with a fault, if the target generation has no equivalent scheme.  An
 * edit keeps any scheme. */
static heft_status burnpack_plan_scheme(heft_plan *p, heft_burnpack_scheme_plan *s, heft_str stored,
                                        uint32_t tensor)
{
    HEFT_TRY(update_encoding(p, s, stored));
    if (!s->cbor.ptr)
        return heft_loss_tensor(p, "burnpack/tensor", tensor,
                                "a quantized tensor without a quantization scheme in its "
                                "stored_dtype cannot be stored in a Burnpack");
    if (p->existing || heft_burnpack_scheme_generations(s->cbor) & s->target->bit)
        return HEFT_OK;
    uint32_t targets = heft_burnpack_scheme_targets(s->cbor, heft_ix_dims(p->x, tensor),
                                                    heft_ix_row(p->x, tensor)->rank);
    if (!(targets & s->target->bit))
        return report_unsupported(p, s, tensor, targets);
    if (s->noted_reencoding)
        return HEFT_OK;
    s->noted_reencoding = true;
    return heft_loss_report(p, HEFT_NOTE, "burnpack/scheme", tensor,
                            "its quantization scheme is rewritten for Burn %s (there may be more)",
                            s->target->name);
}

/* Set s->by_tensor of a tensor that burnpack_plan_scheme() accepted.  Call after
 * heft_plan_compact(), when tensor numbers are final. */
static heft_status burnpack_encode_scheme(heft_plan *p, heft_burnpack_scheme_plan *s,
                                          heft_str stored, uint32_t tensor)
{
    heft_status st = update_encoding(p, s, stored);
    if (!st && !s->by_tensor)
        s->by_tensor = heft_plan_alloc(p, heft_ix_tensors(p->x) * sizeof *s->by_tensor);
    if (st || !s->by_tensor)
        return st ? st : HEFT_E_NOMEM;
    s->by_tensor[tensor] = s->target_cbor;
    return HEFT_OK;
}

typedef struct id_list { /* tensors or values by number, sorted by name */
    uint32_t *ids, count;
} id_list;

typedef struct burnpack_plan { /* heft_plan.priv */
    heft_burnpack_scheme_plan schemes;
    bool text_bool, is_optimizer;
    id_list tensors, metadata, scalars;
    uint64_t manifest_bytes, data_start;
} burnpack_plan;

/* ---- attributes ---- */

static bool is_stored_attribute(const heft_value *attribute)
{
    return heft_str_is(attribute->key, "stored_dtype") ||
           heft_str_is(attribute->key, "burn.param_id");
}

/* Set the param_id from the attribute "burn.param_id" of formats that have no parameter ids, or
 * from the name of a tensor of an optimizer's record.  An edit takes no id from a name. */
static heft_status set_param_id(heft_plan *p, uint32_t tensor)
{
    heft_index *x = p->x;
    const burnpack_plan *b = p->priv;
    heft_value v;
    if (heft_ix_row(x, tensor)->flags & HEFT_T_PARAM_ID)
        return HEFT_OK;
    for (uint32_t i = 0; heft_ix_attribute(&v, x, tensor, i); i++)
        if (heft_str_is(v.key, "burn.param_id") &&
            (v.kind == HEFT_KIND_UINT || (v.kind == HEFT_KIND_INT && v.as.i >= 0)))
            return heft_ix_param_id(x, tensor, v.as.u);
    return b->is_optimizer && !p->existing ? heft_burnpack_derive_id(p, tensor) : HEFT_OK;
}

/* ---- tensors ---- */

/* Return the reason why a dense or quantized tensor cannot be stored, or NULL. */
static const char *unsupported_reason(const heft_index *x, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    heft_str name = heft_ix_name(x, t);
    uint64_t elements, bytes;
    if (!heft_str_is_utf8(name))
        return "a name that is not UTF-8 cannot be stored in a Burnpack";
    if (heft_str_has_nul(name))
        return "a name with a NUL byte cannot be stored in a Burnpack (rename the tensor)";
    if (row->layout == HEFT_DENSE && (!heft_product(&elements, heft_ix_dims(x, t), row->rank) ||
                                      !heft_dtype_bytes(&bytes, row->dtype, elements) ||
                                      bytes != heft_ix_part_row_at(x, row->first_part)->length))
        return "its data do not have the size that its shape and element type require";
    return NULL;
}

static heft_status plan_type(heft_plan *p, uint32_t t)
{
    const burnpack_plan *b = p->priv;
    heft_dtype type = heft_ix_row(p->x, t)->dtype;
    heft_str stored = heft_ix_stored_dtype(p->x, t);
    if (!heft_burnpack_has_type(type))
        return heft_loss_type(p, "burnpack/dtype", t, "a Burnpack");
    if (!stored.ptr)
        return HEFT_OK;
    if (!heft_burnpack_is_stored_dtype(type, stored) && p->is_declared)
        return heft_loss_report(p, HEFT_FAULT, "burnpack/stored-dtype", t,
                                "Burn has no type %q over %s", stored, heft_dtype_name(type));
    if (!heft_burnpack_is_stored_dtype(type, stored))
        return heft_loss_report(p, HEFT_WARNING, "burnpack/stored-dtype", t,
                                "its stored_dtype %q is left out: Burn has no such type", stored);
    if (b->text_bool && type != HEFT_F32)
        return heft_loss_report(p, HEFT_NOTE, "burnpack/bool-kind", t,
                                "its stored_dtype %q is left out: Burn %s does not know that type",
                                stored, b->schemes.target->name);
    return HEFT_OK;
}

static heft_status plan_tensor(heft_plan *p, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    bool quantized = heft_str_is(heft_ix_layout(p->x, t), heft_burn_qfloat) &&
                     row->part_count == 1 && row->dtype == HEFT_U8;
    if (!quantized && !heft_loss_is_plain(p->x, t))
        return heft_loss_tensor(
            p, "burnpack/tensor", t,
            "only dense tensors and tensors quantized by Burn can be stored in a Burnpack");
    const char *reason = quantized || heft_burnpack_has_type(row->dtype)
                             ? unsupported_reason(p->x, t)
                             : NULL;
    if (reason)
        return heft_loss_tensor(p, "burnpack/tensor", t, reason);
    burnpack_plan *b = p->priv;
    heft_status st = quantized
                         ? burnpack_plan_scheme(p, &b->schemes, heft_ix_stored_dtype(p->x, t), t)
                         : plan_type(p, t);
    if (!st)
        st = set_param_id(p, t);
    uint64_t bytes = heft_ix_part_row_at(p->x, heft_ix_row(p->x, t)->first_part)->length;
    if (st || bytes <= HEFT_BURNPACK_MAX_TENSOR)
        return st;
    return heft_plan_loss(p, HEFT_FAULT, "burnpack/tensor-size", t,
                          "the tensor is larger than 10 GiB: Burn will refuse the file");
}

static heft_status plan_tensors(heft_plan *p)
{
    heft_status st = heft_loss_attributes_except(p, "burnpack/attributes", HEFT_T_PARAM_ID,
                                                 is_stored_attribute);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++)
        st = plan_tensor(p, t);
    if (st)
        return st;
    heft_plan_compact(p);
    burnpack_plan *b = p->priv;
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++)
        if (heft_ix_row(p->x, t)->layout != HEFT_DENSE)
            st = burnpack_encode_scheme(p, &b->schemes, heft_ix_stored_dtype(p->x, t), t);
    if (st)
        return st;
    if (heft_ix_tensors(p->x) <= HEFT_BURNPACK_MAX_TENSORS)
        return HEFT_OK;
    return heft_plan_loss(p, HEFT_FAULT, "burnpack/tensor-count", HEFT_NONE,
                          "there are more than 100000 tensors: Burn will refuse the file");
}

/* ---- metadata ---- */

static bool is_scalars(const heft_value *v)
{
    return v->kind == HEFT_KIND_MAP && heft_str_is(v->key, heft_burnpack_scalars);
}

static heft_status plan_scalars(heft_plan *p, uint32_t map)
{
    burnpack_plan *b = p->priv;
    uint32_t end = heft_ix_value_next(p->x, map);
    b->scalars = (id_list){ heft_plan_alloc(p, (end - map) * sizeof *b->scalars.ids), 0 };
    if (!b->scalars.ids)
        return HEFT_E_NOMEM;
    heft_status st = HEFT_OK;
    for (uint32_t i = map + 1; i < end && !st; i = heft_ix_value_next(p->x, i)) {
        heft_value *v = heft_ix_value(p->x, i);
        v->stored = HEFT_UNTYPED; /* scalars have 64 bits, whatever the source stored */
        bool fits = v->kind >= HEFT_KIND_BOOL && v->kind <= HEFT_KIND_FLOAT &&
                    heft_str_is_utf8(v->key);
        if (fits)
            b->scalars.ids[b->scalars.count++] = i;
        else
            st = heft_loss_report(p, HEFT_WARNING, "burnpack/metadata", HEFT_NONE,
                                  "metadata %q is left out: a scalar must be a number or a boolean",
                                  v->key);
    }
    if (st || (b->scalars.count && b->schemes.target->bit & HEFT_BURNPACK_SCALARS))
        return st;
    return heft_plan_loss(p, HEFT_NOTE, "burnpack/scalars", HEFT_NONE,
                          b->scalars.count ? "Burn before 0.22 ignores the scalars"
                                           : "the empty map of scalars is left out");
}

static heft_status plan_metadata(heft_plan *p)
{
    const heft_text_losses losses = { "burnpack/metadata", "burnpack/metadata-text", "a Burnpack",
                                      "" };
    burnpack_plan *b = p->priv;
    b->metadata.ids = heft_plan_alloc(p, p->x->values.len * sizeof *b->metadata.ids);
    if (!b->metadata.ids)
        return HEFT_E_NOMEM;
    heft_status st = heft_meta_unique(p->x, "the metadata");
    for (uint32_t i = 0; i < p->x->values.len && !st; i = heft_ix_value_next(p->x, i)) {
        heft_value *v = heft_ix_value(p->x, i);
        bool is_stored = false;
        st = is_scalars(v) ? plan_scalars(p, i) : heft_loss_as_text(&is_stored, p, v, losses);
        if (is_stored)
            b->metadata.ids[b->metadata.count++] = i;
    }
    return st;
}

/* ---- order ---- */

static heft_status sort_keys(heft_plan *p, id_list *list)
{
    bool is_sorted = true;
    for (uint32_t i = 1; i < list->count; i++)
        is_sorted = is_sorted && heft_ix_key_before(p->x, list->ids[i - 1], list->ids[i]);
    if (is_sorted)
        return HEFT_OK;
    heft_status st = heft_plan_sort(p, list->ids, list->count, heft_ix_key_before);
    return st ? st
              : heft_plan_loss(p, HEFT_NOTE, "burnpack/order", HEFT_NONE,
                               "the metadata are written in the order of their keys");
}

static heft_status sort_all(heft_plan *p)
{
    burnpack_plan *b = p->priv;
    uint32_t n = heft_ix_tensors(p->x);
    b->tensors = (id_list){ heft_plan_alloc(p, n * sizeof *b->tensors.ids), n };
    if (!b->tensors.ids)
        return HEFT_E_NOMEM;
    for (uint32_t t = 0; t < n; t++)
        b->tensors.ids[t] = t;
    HEFT_TRY(heft_plan_sort(p, b->tensors.ids, b->tensors.count, heft_ix_name_before));
    HEFT_TRY(sort_keys(p, &b->metadata));
    return sort_keys(p, &b->scalars);
}

/* ---- the manifest ---- */

static void put_key(heft_out *o, const char *key)
{
    heft_cbor_put_text(o, heft_lit(key));
}

static void put_tensor(heft_out *o, const heft_plan *p, uint32_t t)
{
    const burnpack_plan *b = p->priv;
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    const heft_ix_part_row *part = heft_ix_part_row_at(p->x, row->first_part);
    bool has_id = row->flags & HEFT_T_PARAM_ID;
    heft_cbor_put_text(o, heft_ix_name(p->x, t));
    heft_cbor_put_map(o, has_id ? 4 : 3);
    put_key(o, "dtype");
    heft_str stored = row->attrs ? heft_ix_stored_dtype(p->x, t) : (heft_str){ NULL, 0 };
    if (row->layout == HEFT_DENSE)
        heft_burnpack_put_type(o, row->dtype, stored, b->text_bool);
    else
        heft_out_str(o, b->schemes.by_tensor[t]);
    put_key(o, "shape");
    heft_cbor_put_array(o, row->rank);
    for (uint32_t i = 0; i < row->rank; i++)
        heft_cbor_put_u64(o, heft_ix_dims(p->x, t)[i]);
    put_key(o, "data_offsets");
    heft_cbor_put_array(o, 2);
    heft_cbor_put_u64(o, part->offset - b->data_start);
    heft_cbor_put_u64(o, part->offset - b->data_start + part->length);
    if (!has_id)
        return;
    put_key(o, "param_id");
    heft_cbor_put_u64(o, ((const uint64_t *)p->x->param_ids.ptr)[t]);
}

static void put_scalar(heft_out *o, const heft_value *v)
{
    heft_cbor_put_text(o, v->key);
    heft_cbor_put_map(o, 1);
    if (v->kind == HEFT_KIND_INT) {
        put_key(o, "Int");
        heft_cbor_put_i64(o, v->as.i);
    } else if (v->kind == HEFT_KIND_UINT) {
        put_key(o, "UInt");
        heft_cbor_put_u64(o, v->as.u);
    } else if (v->kind == HEFT_KIND_FLOAT) {
        put_key(o, "Float");
        heft_cbor_put_f64(o, v->as.f);
    } else {
        put_key(o, "Bool");
        heft_cbor_put_bool(o, v->as.b);
    }
}

static void put_manifest(heft_out *o, const heft_plan *p)
{
    const burnpack_plan *b = p->priv;
    heft_cbor_put_map(o, 1u + (b->metadata.count > 0) + (b->scalars.count > 0));
    put_key(o, "tensors");
    heft_cbor_put_map(o, b->tensors.count);
    for (uint32_t i = 0; i < b->tensors.count; i++)
        put_tensor(o, p, b->tensors.ids[i]);
    if (b->metadata.count) {
        put_key(o, "metadata");
        heft_cbor_put_map(o, b->metadata.count);
    }
    for (uint32_t i = 0; i < b->metadata.count; i++) {
        const heft_value *v = heft_ix_value(p->x, b->metadata.ids[i]);
        heft_cbor_put_text(o, v->key);
        heft_cbor_put_text(o, v->as.s);
    }
    if (b->scalars.count) {
        put_key(o, "scalars");
        heft_cbor_put_map(o, b->scalars.count);
    }
    for (uint32_t i = 0; i < b->scalars.count; i++)
        put_scalar(o, heft_ix_value(p->x, b->scalars.ids[i]));
}

/* ---- offsets ---- */

static heft_status check_sizes(heft_plan *p)
{
    const burnpack_plan *b = p->priv;
    if (b->manifest_bytes > UINT32_MAX)
        return heft_error_plain(p->err, HEFT_E_LOSSY,
                                "the manifest would have %U bytes, more than the limit of 2^32 - 1",
                                b->manifest_bytes);
    if (b->manifest_bytes > HEFT_BURNPACK_MAX_METADATA)
        HEFT_TRY(heft_plan_loss(p, HEFT_FAULT, "burnpack/manifest-size", HEFT_NONE,
                                "the manifest is larger than 100 MiB: Burn will refuse the file"));
    if (p->file_bytes > HEFT_BURNPACK_MAX_FILE)
        HEFT_TRY(heft_plan_loss(p, HEFT_FAULT, "burnpack/file-size", HEFT_NONE,
                                "the file is larger than 100 GiB: Burn will refuse it"));
    return HEFT_OK;
}

/* Lay out the data first, from offset 0: offsets in the manifest are relative to the start of
 * the data, so the manifest can be measured before data_start is known. */
static heft_status plan_offsets(heft_plan *p)
{
    burnpack_plan *b = p->priv;
    heft_status st = HEFT_OK;
    if (p->requested_align > HEFT_BURNPACK_ALIGN && !p->existing)
        st = heft_plan_loss(p, HEFT_NOTE, "burnpack/align", HEFT_NONE,
                            "payloads are aligned to 256 bytes, the only alignment of a Burnpack");
    p->align = HEFT_BURNPACK_ALIGN;
    p->fill = 0;
    if (!st)
        st = heft_plan_place(p, 0, 1);
    if (st)
        return st;
    heft_out count = heft_out_counting();
    put_manifest(&count, p);
    b->manifest_bytes = count.total;
    if (!heft_align_up(&b->data_start, HEFT_BURNPACK_HEADER + count.total, HEFT_BURNPACK_ALIGN) ||
        !heft_add(&p->data_end, p->data_end, b->data_start))
        return heft_error_plain(p->err, HEFT_E_LOSSY, "the file would be larger than 2^64 bytes");
    for (uint32_t i = 0; i < p->x->parts.len; i++)
        heft_ix_part_row_at(p->x, i)->offset += b->data_start;
    p->header_bytes = b->data_start;
    p->file_bytes = p->data_end;
    return check_sizes(p);
}

/* ---- entry points ---- */

heft_status heft_burnpack_plan(heft_plan *p)
{
    burnpack_plan *b = heft_plan_alloc(p, sizeof *b);
    if (!b)
        return HEFT_E_NOMEM;
    p->priv = b;
    heft_str version = heft_lit(p->version ? p->version : heft_burnpack_generations[0].name);
    for (uint32_t i = 0; i < HEFT_BURNPACK_GENERATIONS; i++)
        if (heft_burnpack_generations[i].can_write &&
            heft_str_is(version, heft_burnpack_generations[i].name))
            b->schemes.target = &heft_burnpack_generations[i];
    if (!b->schemes.target)
        return heft_error_plain(p->err, HEFT_E_ARGUMENT,
                                "Burnpacks of Burn %q cannot be written, only of 0.21, 0.20, 0.22 "
                                "and 0.22-pre.2",
                                version);
    b->text_bool = b->schemes.target->bit & HEFT_BURNPACK_TEXT_BOOL;
    b->is_optimizer = heft_burnpack_is_optimizer(p->x);
    heft_status st = heft_loss_parts(p, "burnpack/parts", NULL, "a Burnpack");
    if (!st)
        st = plan_tensors(p);
    if (!st)
        st = plan_metadata(p);
    if (!st)
        st = sort_all(p);
    if (!st)
        st = heft_plan_find_shared(p);
    /* Burn reads tied weights that are stored once; verify reports every tied tensor. */
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++) {
        uint32_t part = heft_ix_row(p->x, t)->first_part;
        if (p->duplicate_of[part] != part)
            st = heft_plan_loss(p, HEFT_NOTE, "burnpack/shared", t,
                                "its data are shared with another tensor and stored once");
    }
    return st ? st : plan_offsets(p);
}

heft_status heft_burnpack_write_header(const heft_plan *p, heft_out *o)
{
    const burnpack_plan *b = p->priv;
    heft_out_str(o, heft_lit("NRUB"));
    heft_out_u16(o, 1);
    heft_out_u32(o, (uint32_t)b->manifest_bytes);
    put_manifest(o, p);
    heft_out_fill(o, 0, b->data_start - HEFT_BURNPACK_HEADER - b->manifest_bytes);
    return o->st;
}
