/* embd_write.c - plans EMBD files in both layouts, and writes the specified layout (see embd.c). */
#include "base/crc.h"
#include "format/embd/embd.h"
#include "format/losses.h"
#include "model/values.h"

enum {
    HEADER = HEFT_EMBD_HEADER,
    CHECKED = HEFT_EMBD_CHECKED,
    META_HEADER = HEFT_EMBD_META_HEADER,
    META_ENTRY = HEFT_EMBD_META_ENTRY
};

typedef struct embd_plan { /* heft_plan.priv */
    bool is_simple;
    const heft_vocab *vocab;
    uint32_t entries, meta_total;
    heft_range meta, vocabulary, index;
    bool has_header_crc, has_data_crc, has_file_crc;
    uint32_t data_crc, file_crc; /* numbers of range digests, if has_data_crc, has_file_crc */
} embd_plan;

static bool is_text(heft_str s, uint64_t max_bytes)
{
    return s.len <= max_bytes && heft_str_is_utf8(s);
}

/* ---- tensors ---- */

static uint32_t code_of(heft_dtype t)
{
    return heft_dtype_code(t, heft_embd_types, HEFT_EMBD_TYPES);
}

/* Return why a tensor of any element type cannot be stored, or NULL. */
static const char *unsupported_reason(const heft_index *x, uint32_t t, bool is_simple)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    const uint64_t *dims = heft_ix_dims(x, t);
    if (!heft_loss_is_plain(x, t))
        return "only dense tensors can be stored in an EMBD file";
    if (!row->name_len)
        return "an empty name cannot be stored in an EMBD file";
    if (!is_text(heft_ix_name(x, t), is_simple ? (uint64_t)HEFT_EMBD_SIMPLE_TEXT : UINT16_MAX))
        return "a name in an EMBD file must be UTF-8 of at most 65535 bytes (simple: 1 MiB)";
    if (row->rank > HEFT_EMBD_RANK)
        return "more than 4 dimensions cannot be stored in an EMBD file";
    for (uint32_t i = 0; i < row->rank; i++)
        if (!dims[i] || dims[i] > UINT32_MAX)
            return "a dimension of 0 or above 2^32 - 1 cannot be stored in an EMBD file";
    return NULL;
}

static heft_status plan_tensor(heft_plan *p, uint32_t t, bool is_simple)
{
    heft_dtype type = heft_ix_row(p->x, t)->dtype;
    const char *reason = unsupported_reason(p->x, t, is_simple);
    if (reason)
        return heft_loss_tensor(p, "embd/tensor", t, reason);
    if (is_simple ? type != HEFT_F32 : code_of(type) == HEFT_EMBD_TYPES)
        return heft_loss_type(p, "embd/dtype", t,
                              is_simple ? "a simple EMBD stream" : "an EMBD file");
    return heft_loss_scalar(p, "embd/rank-0", t, "an EMBD file");
}

/* ---- metadata ---- */

/* Set *out to the text that is written for a value, borrowed from the value or from `digits`;
 * return false if the value is left out. */
static bool entry_text(heft_str *out, const heft_value *v, char digits[HEFT_F64_TEXT])
{
    return is_text(v->key, UINT16_MAX) && heft_value_text(out, v, digits) && out->len <= UINT16_MAX;
}

static heft_status plan_value(heft_plan *p, const heft_value *v, uint64_t *total)
{
    char digits[HEFT_F64_TEXT];
    heft_str text;
    bool is_long_key = v->key.len > UINT16_MAX;
    if (!heft_str_is_utf8(v->key) || !heft_value_text(&text, v, digits))
        return heft_loss_report(p, HEFT_WARNING, "embd/metadata", HEFT_NONE,
                                "metadata %q is left out: an EMBD file stores only text", v->key);
    if (is_long_key || text.len > UINT16_MAX)
        return heft_loss_length(p, "embd/metadata-length", v->key, is_long_key ? "key" : "value",
                                is_long_key ? v->key.len : text.len, UINT16_MAX, "an EMBD file");
    *total += META_ENTRY + v->key.len + text.len;
    if (v->kind == HEFT_KIND_STR)
        return HEFT_OK;
    return heft_loss_report(p, HEFT_NOTE, "embd/metadata-text", HEFT_NONE,
                            "metadata %q becomes text", v->key);
}

static heft_status plan_metadata(heft_plan *p, embd_plan *e)
{
    uint64_t total = 0, before;
    heft_status st = heft_meta_unique(p->x, "the metadata");
    for (uint32_t i = 0; i < p->x->values.len && !st; i = heft_ix_value_next(p->x, i)) {
        before = total;
        st = plan_value(p, heft_ix_value(p->x, i), &total);
        e->entries += total > before;
    }
    e->meta_total = (uint32_t)total;
    if (!st && total > UINT32_MAX - META_HEADER)
        st = heft_error_plain(p->err, HEFT_E_LOSSY,
                              "the metadata would take %U bytes, EMBD stores at most 2^32 - 9",
                              total);
    return st;
}

static void put_metadata(heft_out *o, const heft_index *x, const embd_plan *e)
{
    char digits[HEFT_F64_TEXT];
    heft_str text;
    heft_out_u32(o, e->entries);
    heft_out_u32(o, e->meta_total);
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i)) {
        const heft_value *v = heft_ix_value(x, i);
        if (!entry_text(&text, v, digits))
            continue;
        heft_out_u16(o, (uint16_t)v->key.len);
        heft_out_u16(o, (uint16_t)text.len);
        heft_out_str(o, v->key);
        heft_out_str(o, text);
    }
}

/* ---- offsets ---- */

static heft_status plan_sections(heft_plan *p, embd_plan *e)
{
    uint64_t tokens = e->vocab ? heft_embd_token_bytes(e->vocab, 2) : 0;
    uint64_t end;
    e->meta = (heft_range){ HEADER, META_HEADER + (uint64_t)e->meta_total };
    e->vocabulary = (heft_range){ e->meta.offset + e->meta.length, 0 };
    if (e->vocab)
        e->vocabulary.length = HEFT_EMBD_VOCAB_HEADER + tokens + HEFT_EMBD_SPECIAL;
    e->index = (heft_range){ e->vocabulary.offset + e->vocabulary.length, 0 };
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++)
        e->index.length += HEFT_EMBD_DESCRIPTOR + (uint64_t)heft_ix_row(p->x, t)->name_len;
    bool fits = heft_align_up(&end, e->index.offset + e->index.length, p->align);
    if (!fits || end > UINT32_MAX)
        return heft_error_plain(p->err, HEFT_E_LOSSY,
                                "the sections before the data would take %U bytes, EMBD stores at "
                                "most 2^32 - 1",
                                end);
    uint64_t start = e->index.offset + e->index.length;
    p->header_bytes = heft_plan_keep_data_start(p, &start) ? start : end;
    return HEFT_OK;
}

/* Return true if the written file gets the checksum.  An edit adds no checksum that the file lacks:
 * a new checksum would vouch for data that cannot be verified. */
static bool has_crc(const heft_plan *p, const char *rule)
{
    const heft_stored_checksum *sums = p->existing ? p->existing->checksums.ptr : NULL;
    bool has = !p->existing;
    for (uint32_t i = 0; p->existing && i < p->existing->checksums.len; i++)
        has = has || (heft_str_is(heft_lit(sums[i].rule), rule) &&
                      !heft_global_offset_file(p->existing, sums[i].range[0].offset));
    return has;
}

static heft_status plan_specified_layout(heft_plan *p, embd_plan *e)
{
    p->fill = 0;
    p->align = p->align > HEFT_EMBD_ALIGN ? p->align : HEFT_EMBD_ALIGN;
    heft_status st = plan_sections(p, e);
    if (!st)
        st = heft_plan_place(p, p->header_bytes, 1);
    if (!st && !heft_add(&p->file_bytes, p->data_end, HEFT_EMBD_FOOTER))
        st = heft_error_plain(p->err, HEFT_E_LOSSY, "the file would exceed 2^64 bytes");
    heft_range data = { p->header_bytes, p->data_end - p->header_bytes };
    e->has_header_crc = has_crc(p, heft_embd_header_crc);
    e->has_data_crc = has_crc(p, heft_embd_data_crc);
    e->has_file_crc = has_crc(p, heft_embd_file_crc);
    if (!st && e->has_data_crc)
        st = heft_plan_digest_range(p, "crc32", data, &e->data_crc);
    if (!st && e->has_file_crc)
        st = heft_plan_digest_range(p, "crc32", (heft_range){ 0, p->data_end }, &e->file_crc);
    return st;
}

/* ---- functions of heft_format_embd ---- */

heft_status heft_embd_plan(heft_plan *p)
{
    embd_plan *e = heft_plan_alloc(p, sizeof *e);
    if (!e)
        return HEFT_E_NOMEM;
    p->priv = e;
    heft_str version = heft_lit(p->version ? p->version : heft_embd_version);
    e->is_simple = heft_str_is(version, heft_embd_simple_version);
    if (!e->is_simple && !heft_str_is(version, heft_embd_version))
        return heft_error_plain(p->err, HEFT_E_ARGUMENT,
                                "EMBD version %s cannot be written, only 1.0 and simple",
                                p->version);
    heft_status st = heft_loss_parts(p, "embd/parts", "vocab", "an EMBD file");
    if (!st)
        st = e->is_simple ? heft_loss_metadata(p, "embd/metadata", "a simple EMBD stream")
                          : plan_metadata(p, e);
    if (!st)
        st = heft_embd_plan_vocab(p, e->is_simple, &e->vocab);
    if (!st)
        st = heft_loss_attributes(p, "embd/attributes", HEFT_T_NAME_HASH);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++)
        st = plan_tensor(p, t, e->is_simple);
    if (st)
        return st;
    heft_plan_compact(p);
    return e->is_simple ? heft_embd_simple_plan_layout(p, e->vocab) : plan_specified_layout(p, e);
}

static void put_header(heft_out *o, const heft_plan *p)
{
    const embd_plan *e = p->priv;
    uint32_t flags = HEFT_EMBD_ALIGNED | HEFT_EMBD_CHECKSUMS | (e->vocab ? HEFT_EMBD_VOCAB : 0);
    if (p->existing && p->existing->tokens.length_bytes)
        flags &= (uint32_t)p->existing->format_private;
    else if (p->existing)
        flags &= (uint32_t)p->existing->format_private |
                 HEFT_EMBD_VOCAB; /* an edit may add a vocabulary */
    heft_out_str(o, heft_lit("EMBD"));
    heft_out_u16(o, 1);
    heft_out_u16(o, 0);
    heft_out_u32(o, flags);
    heft_out_u32(o, (uint32_t)e->meta.offset);
    heft_out_u32(o, (uint32_t)e->meta.length);
    heft_out_u32(o, e->vocab ? (uint32_t)e->vocabulary.offset : 0);
    heft_out_u32(o, (uint32_t)e->vocabulary.length);
    heft_out_u32(o, (uint32_t)e->index.offset);
    heft_out_u32(o, heft_ix_tensors(p->x));
    heft_out_u32(o, (uint32_t)p->header_bytes);
    heft_out_u64(o, p->data_end - p->header_bytes);
    heft_out_u64(o, p->file_bytes);
}

static void put_descriptor(heft_out *o, const heft_plan *p, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    const uint64_t *dims = heft_ix_dims(p->x, t);
    heft_out_u32(o, heft_str_fnv1a(heft_ix_name(p->x, t)));
    heft_out_u8(o, (uint8_t)code_of(row->dtype));
    heft_out_u8(o, (uint8_t)row->rank);
    heft_out_u16(o, (uint16_t)row->name_len);
    for (uint32_t i = 0; i < HEFT_EMBD_RANK; i++)
        heft_out_u32(o, i < row->rank ? (uint32_t)dims[i] : 0);
    heft_out_u64(o, heft_ix_part_row_at(p->x, row->first_part)->offset - p->header_bytes);
}

heft_status heft_embd_write_header(const heft_plan *p, heft_out *o)
{
    const embd_plan *e = p->priv;
    uint8_t header[CHECKED];
    heft_out h = { .buf = header, .cap = sizeof header };
    if (e->is_simple)
        return heft_embd_simple_write_header(p, o);
    put_header(&h, p);
    heft_out_bytes(o, header, sizeof header);
    heft_out_u32(o, e->has_header_crc ? heft_crc32(0, header, sizeof header) : 0);
    heft_out_u32(o, 0);
    put_metadata(o, p->x, e);
    if (e->vocab)
        heft_embd_put_vocab(o, e->vocab, (uint32_t)e->vocabulary.offset);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++)
        put_descriptor(o, p, t);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++)
        heft_out_str(o, heft_ix_name(p->x, t));
    heft_out_fill(o, 0, p->header_bytes - e->index.offset - e->index.length);
    return o->st;
}

heft_status heft_embd_write_record_header(const heft_plan *p, uint32_t part, heft_out *o)
{
    const embd_plan *e = p->priv;
    return e->is_simple ? heft_embd_simple_write_record_header(p, part, o) : HEFT_OK;
}

static heft_status put_crc(const heft_plan *p, bool has_crc, uint32_t number, heft_out *o)
{
    static const uint8_t none[4] = { 0 };
    const uint8_t *crc = none;
    if (has_crc)
        HEFT_TRY(heft_plan_range_digest(p, number, &crc));
    heft_out_bytes(o, crc, 4);
    return HEFT_OK;
}

heft_status heft_embd_write_trailer(const heft_plan *p, heft_out *o)
{
    const embd_plan *e = p->priv;
    if (e->is_simple) {
        heft_embd_put_simple_vocab(o, e->vocab);
        return o->st;
    }
    heft_status st = put_crc(p, e->has_data_crc, e->data_crc, o);
    if (!st)
        st = put_crc(p, e->has_file_crc, e->file_crc, o);
    heft_out_str(o, heft_lit("DBME"));
    heft_out_u32(o, 0);
    return st ? st : o->st;
}
