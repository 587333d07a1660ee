/* gptrs_write.c - plans and writes gpt-rs checkpoints and tensor archives, version 2 (gptrs.c). */
#include "base/blake3.h"
#include "format/gptrs/gptrs.h"
#include "format/losses.h"

enum { MAGIC = HEFT_GPTRS_MAGIC, BASE_ID = HEFT_GPTRS_BASE_ID };

/* ---- planning ---- */

typedef struct layout { /* heft_plan.priv */
    bool is_checkpoint;
    heft_str config[3]; /* config_json in three pieces */
    uint64_t config_bytes, index_bytes;
} layout;

static uint32_t tag_of(heft_dtype t)
{
    return heft_dtype_code(t, heft_gptrs_types, HEFT_GPTRS_TYPES);
}

/* Refuse to replace a stored id that is wrong for the name: the name or the id is damaged, and an
 * edit must not hide damage. */
static heft_status check_replaced_id(heft_plan *p, uint32_t t)
{
    const uint8_t *requested = heft_ix_base_id_at(p->x, t);
    const uint8_t *stored = p->existing ? heft_ix_base_id_at(p->existing, t) : NULL;
    if (!requested || !stored || !memcmp(requested, stored, BASE_ID) ||
        heft_gptrs_is_id_of(stored, heft_ix_name(p->existing, t)))
        return HEFT_OK;
    return heft_error_plain(p->err, HEFT_E_CHECKSUM,
                            "tensor %q: its stored base id is not the BLAKE3 of its name: an edit "
                            "would hide this damage ('heft convert' writes correct ids)",
                            heft_ix_name(p->existing, t));
}

static heft_status plan_tensor(heft_plan *p, uint32_t t, bool is_checkpoint, bool *has_half)
{
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    heft_str name = heft_ix_name(p->x, t);
    const char *reason = NULL;
    if (!heft_loss_is_plain(p->x, t))
        reason = "only dense tensors can be stored in .gptrs and .gten";
    else if (is_checkpoint && !heft_is_ascii(name.ptr, name.len))
        reason = "names in a checkpoint must be ASCII";
    if (reason)
        return heft_loss_tensor(p, "gptrs/tensor", t, reason);
    if (tag_of(row->dtype) == HEFT_GPTRS_TYPES)
        return heft_loss_type(p, "gptrs/dtype", t, "a gpt-rs file");
    *has_half = *has_half || row->dtype == HEFT_F16 || row->dtype == HEFT_BF16;
    HEFT_TRY(heft_gptrs_plan_base_id(p, t, is_checkpoint));
    return heft_loss_scalar(p, "gptrs/rank-0", t, "a gpt-rs file");
}

static heft_status plan_tensors(heft_plan *p, bool is_checkpoint)
{
    bool has_half = false;
    heft_status st = heft_loss_attributes(p, "gptrs/attributes", HEFT_T_GRAD);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++) {
        st = check_replaced_id(p, t);
        if (!st)
            st = plan_tensor(p, t, is_checkpoint, &has_half);
    }
    if (!st && has_half)
        st = heft_plan_loss(p, HEFT_NOTE, "gptrs/half", HEFT_NONE,
                            "early gpt-rs readers of this format refuse f16 and bf16");
    if (!st)
        heft_plan_compact(p);
    return st;
}

static heft_status plan_config(heft_plan *p, layout *l)
{
    heft_gptrs_config config = { false, false };
    heft_error config_error;
    HEFT_TRY(heft_plan_model_part(p, "config", &l->config[1]));
    if (!l->config[1].ptr) {
        l->config[1] = heft_lit("{\"kind\":\"unknown\",\"config\":{}}");
        return heft_plan_loss(p, HEFT_WARNING, "gptrs/config", HEFT_NONE,
                              "no config: a checkpoint needs one, so a placeholder of kind "
                              "'unknown' is written");
    }
    heft_status st = heft_gptrs_config_read(&config, l->config[1], 0, p->x->limits.depth, p->arena,
                                            &config_error);
    if (st)
        return heft_error_plain(p->err, st == HEFT_E_NOMEM ? st : HEFT_E_ARGUMENT,
                                "the config cannot be used: %s", config_error.message);
    if (!config.is_untagged || (p->existing && !p->is_new_config))
        return HEFT_OK;
    l->config[0] = heft_lit("{\"kind\":\"gpt\",\"config\":");
    l->config[2] = heft_lit("}");
    return heft_plan_warn(p, "gptrs/config",
                          "the bare GPT configuration is put under \"config\", with kind \"gpt\"");
}

/* Emit the requested id, if any.  Otherwise keep an existing tensor's id, unless that id is the
 * hash of the old name: the edit may rename the tensor.  In a new file every id is derived from the
 * name. */
static void put_base_id(heft_out *o, const heft_plan *p, uint32_t t)
{
    heft_str name = heft_ix_name(p->x, t);
    const uint8_t *requested = heft_ix_base_id_at(p->x, t);
    const uint8_t *stored = p->existing ? heft_ix_base_id_at(p->existing, t) : NULL;
    uint8_t id[BASE_ID] = { 0 };
    if (!o->buf)
        ; /* the bytes are only counted: do not hash */
    else if (requested)
        memcpy(id, requested, BASE_ID);
    else if (!p->existing || (stored && heft_gptrs_is_id_of(stored, heft_ix_name(p->existing, t))))
        heft_blake3_id(id, name.ptr, name.len);
    else if (stored)
        memcpy(id, stored, BASE_ID);
    heft_out_bytes(o, id, BASE_ID);
}

static void put_entry(heft_out *o, const heft_plan *p, uint32_t t, bool is_checkpoint)
{
    const heft_index *x = p->x;
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    const heft_ix_part_row *part = heft_ix_part_row_at(x, row->first_part);
    const uint64_t *dims = heft_ix_dims(x, t);
    heft_out_u32(o, row->name_len);
    heft_out_str(o, heft_ix_name(x, t));
    if (is_checkpoint)
        put_base_id(o, p, t);
    heft_out_u32(o, row->rank);
    for (uint32_t i = 0; i < row->rank; i++)
        heft_out_u64(o, dims[i]);
    heft_out_u32(o, tag_of(row->dtype));
    heft_out_u8(o, row->flags & HEFT_T_GRAD ? 1 : 0);
    heft_out_u64(o, part->offset);
    heft_out_u64(o, part->length);
}

static void put_index(heft_out *o, const heft_plan *p, bool is_checkpoint)
{
    heft_out_u32(o, heft_ix_tensors(p->x));
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++)
        put_entry(o, p, t, is_checkpoint);
}

static heft_status plan_layout(heft_plan *p, layout *l)
{
    for (unsigned i = 0; i < 3; i++)
        l->config_bytes += l->config[i].len;
    heft_out count = heft_out_counting();
    put_index(&count, p, l->is_checkpoint);
    l->index_bytes = count.total;
    if (l->index_bytes > UINT32_MAX || l->config_bytes > UINT32_MAX)
        return heft_error_plain(p->err, HEFT_E_LOSSY,
                                "%s takes %U bytes, at most 2^32 - 1 can be stored",
                                l->index_bytes > UINT32_MAX ? "the index" : "the config",
                                l->index_bytes > UINT32_MAX ? l->index_bytes : l->config_bytes);
    uint64_t config = l->is_checkpoint ? 4 + l->config_bytes : 0;
    p->fill = 0;
    p->header_bytes = MAGIC + 4 + config + 4 + l->index_bytes;
    p->data_end = p->header_bytes;
    uint64_t start = p->header_bytes;
    heft_plan_keep_data_start(p, &start);
    heft_status st = heft_ix_tensors(p->x) ? heft_plan_place(p, start, 1) : HEFT_OK;
    p->file_bytes = p->data_end;
    return st;
}

static heft_status plan(heft_plan *p, bool is_checkpoint)
{
    if (p->version && !heft_str_is(heft_lit(p->version), "2"))
        return heft_error_plain(p->err, HEFT_E_ARGUMENT,
                                "version %s of gpt-rs files cannot be written, only 2", p->version);
    layout *l = heft_plan_alloc(p, sizeof *l);
    if (!l)
        return HEFT_E_NOMEM;
    *l = (layout){ .is_checkpoint = is_checkpoint };
    p->priv = l;
    const char *where = is_checkpoint ? "a gpt-rs checkpoint" : "a gpt-rs archive";
    HEFT_TRY(heft_loss_parts(p, "gptrs/parts", is_checkpoint ? "config" : NULL, where));
    HEFT_TRY(heft_loss_metadata(p, "gptrs/metadata", where));
    if (is_checkpoint)
        HEFT_TRY(plan_config(p, l));
    HEFT_TRY(plan_tensors(p, is_checkpoint));
    HEFT_TRY(heft_plan_find_shared(p));
    return plan_layout(p, l);
}

heft_status heft_gptrs_plan_checkpoint(heft_plan *p)
{
    return plan(p, true);
}

heft_status heft_gptrs_plan_archive(heft_plan *p)
{
    return plan(p, false);
}

/* ---- writing ---- */

heft_status heft_gptrs_write_header(const heft_plan *p, heft_out *o)
{
    const layout *l = p->priv;
    heft_out_str(o, heft_lit(heft_gptrs_magic(l->is_checkpoint)));
    heft_out_u32(o, 2);
    if (l->is_checkpoint) {
        heft_out_u32(o, (uint32_t)l->config_bytes);
        for (unsigned i = 0; i < 3; i++)
            heft_out_str(o, l->config[i]);
    }
    heft_out_u32(o, (uint32_t)l->index_bytes);
    put_index(o, p, l->is_checkpoint);
    return o->st;
}
