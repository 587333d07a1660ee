/* safetensors_write.c - plans and writes safetensors files; safetensors.c shows the layout.
 *
 * The header lists the tensors in the order of the model.  The data is in the same order, unless
 * some tensor would not be aligned to the element size: then larger element types come first, as in
 * the reference implementation.
 */
#include "base/sort.h"
#include "format/losses.h"
#include "format/safetensors/safetensors.h"
#include "grammar/json.h"
#include "model/values.h"

typedef struct st_plan { /* heft_plan.priv */
    uint64_t header_end; /* end of the JSON; padded with spaces up to the data */
    uint64_t data;       /* offset of the data section */
} st_plan;

/* ---- metadata ---- */

static heft_status plan_metadata(heft_plan *p)
{
    char buf[HEFT_F64_TEXT];
    heft_str text;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < p->x->values.len && !st; i = heft_ix_value_next(p->x, i)) {
        const heft_value *v = heft_ix_value(p->x, i);
        if (!heft_str_is_utf8(v->key) || !heft_value_text(&text, v, buf))
            st = heft_loss_report(p, HEFT_WARNING, "safetensors/metadata", HEFT_NONE,
                                  "metadata %q is left out: safetensors stores only text", v->key);
        else if (v->kind != HEFT_KIND_STR)
            st = heft_loss_report(p, HEFT_NOTE, "safetensors/metadata-text", HEFT_NONE,
                                  "metadata %q becomes text", v->key);
    }
    return st;
}

/* Emit the metadata; return true if there was any. */
static bool put_metadata(heft_out *o, const heft_index *x)
{
    char buf[HEFT_F64_TEXT];
    heft_str text;
    bool follows = false;
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i)) {
        const heft_value *v = heft_ix_value(x, i);
        if (!heft_str_is_utf8(v->key) || !heft_value_text(&text, v, buf))
            continue;
        heft_out_str(o, heft_lit(follows ? "," : "\"__metadata__\":{"));
        heft_json_put_str(o, v->key);
        heft_out_u8(o, ':');
        heft_json_put_str(o, text);
        follows = true;
    }
    if (follows)
        heft_out_u8(o, '}');
    return follows;
}

static bool has_key(const heft_index *x, const char *key)
{
    bool has = false;
    for (uint32_t i = 0; i < x->values.len && !has; i = heft_ix_value_next(x, i))
        has = heft_str_is(heft_ix_value(x, i)->key, key);
    return has;
}

/* Return true if the header will have metadata. */
static bool has_metadata(const heft_index *x)
{
    heft_out count = heft_out_counting();
    return put_metadata(&count, x);
}

/* transformers loads a file without metadata, or with a known "format".  An edit adds nothing, but
 * warns about metadata that make a file unloadable. */
static heft_status plan_format_key(heft_plan *p)
{
    if (has_key(p->x, "format") || !has_metadata(p->x))
        return HEFT_OK;
    bool was_loadable = p->existing && (has_key(p->existing, "format") || !p->existing->values.len);
    if (was_loadable)
        return heft_plan_warn(p, "safetensors/format",
                              "the file has metadata without \"format\": transformers will not "
                              "load it (--set format=pt)");
    if (!p->fills_metadata)
        return HEFT_OK;
    heft_status st = heft_ix_meta_text(p->x, heft_lit("format"), heft_lit("pt"));
    return st ? st
              : heft_plan_loss(p, HEFT_NOTE, "safetensors/format", HEFT_NONE,
                               "metadata \"format\" is added with the value \"pt\", because "
                               "transformers loads no file that has other metadata only");
}

/* ---- tensors ---- */

/* Return why a tensor cannot be stored, or NULL. */
static const char *obstacle(const heft_index *x, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    heft_str name = heft_ix_name(x, t);
    const uint64_t *dims = heft_ix_dims(x, t);
    uint64_t elements = 1, bytes;
    if (!heft_loss_is_plain(x, t))
        return "only dense tensors can be stored in safetensors";
    if (heft_st_is_metadata(name))
        return "the name is reserved for metadata in safetensors (rename the tensor)";
    if (!heft_str_is_utf8(name))
        return "a name that is not UTF-8 cannot be stored in safetensors";
    /* Like the reference, fail on overflow even if a later dimension is zero. */
    for (uint32_t i = 0; i < row->rank; i++)
        if (dims[i] > INT64_MAX || !heft_mul(&elements, elements, dims[i]))
            return "the shape is too large for safetensors readers";
    if (!heft_dtype_fills_blocks(row->dtype, elements))
        return "the elements do not fill whole bytes, as safetensors requires";
    if (!heft_dtype_bytes(&bytes, row->dtype, elements) ||
        bytes != heft_ix_part_row_at(x, row->first_part)->length)
        return "the data size does not match the shape, as safetensors requires";
    return NULL;
}

static heft_status plan_tensor(heft_plan *p, uint32_t t)
{
    heft_dtype type = heft_ix_row(p->x, t)->dtype;
    if (heft_loss_is_plain(p->x, t) && !heft_dtype_spelling_of(&heft_st_types, type))
        return heft_loss_type(p, "safetensors/dtype", t, "safetensors");
    const char *why = obstacle(p->x, t);
    return why ? heft_loss_tensor(p, "safetensors/tensor", t, why) : HEFT_OK;
}

/* ---- alignment ---- */

static uint32_t alignment(const heft_index *x, uint32_t part)
{
    uint32_t size = heft_dtype_size(heft_ix_part_row_at(x, part)->dtype);
    return size ? size : 1; /* packed types have no size */
}

static bool is_larger(const void *ctx, uint32_t a, uint32_t b)
{
    return alignment(ctx, a) > alignment(ctx, b);
}

static bool is_aligned(const heft_plan *p)
{
    uint64_t misplaced = 0;
    for (uint32_t i = 0; i < p->order_count; i++) {
        uint64_t offset = heft_ix_part_row_at(p->x, p->order[i])->offset;
        misplaced |= offset & (alignment(p->x, p->order[i]) - 1u);
    }
    return !misplaced;
}

/* ---- the header ---- */

static void put_tensor(heft_out *o, const heft_index *x, uint32_t t, uint64_t data)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    const heft_ix_part_row *part = heft_ix_part_row_at(x, row->first_part);
    const uint64_t *dims = heft_ix_dims(x, t);
    heft_json_put_str(o, heft_ix_name(x, t));
    heft_out_str(o, heft_lit(":{\"dtype\":\""));
    heft_out_str(o, heft_lit(heft_dtype_spelling_of(&heft_st_types, row->dtype)));
    heft_out_str(o, heft_lit("\",\"shape\":["));
    for (uint32_t i = 0; i < row->rank; i++) {
        if (i)
            heft_out_u8(o, ',');
        heft_json_put_u64(o, dims[i]);
    }
    heft_out_str(o, heft_lit("],\"data_offsets\":["));
    heft_json_put_u64(o, part->offset - data);
    heft_out_u8(o, ',');
    heft_json_put_u64(o, part->offset - data + part->length);
    heft_out_str(o, heft_lit("]}"));
}

static void put_header(heft_out *o, const heft_index *x, uint64_t data)
{
    heft_out_u8(o, '{');
    bool follows = put_metadata(o, x);
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        if (follows)
            heft_out_u8(o, ',');
        put_tensor(o, x, t, data);
        follows = true;
    }
    heft_out_u8(o, '}');
}

/* ---- functions of the format ---- */

static heft_status place_data(heft_plan *p, st_plan *s)
{
    uint64_t align = p->align > HEFT_ST_ALIGN ? p->align : HEFT_ST_ALIGN;
    p->align = 1;                       /* no gaps */
    HEFT_TRY(heft_plan_place(p, 0, 1)); /* provisional: data at offset 0 */
    if (!is_aligned(p)) {
        uint32_t *scratch = heft_plan_alloc(p, p->order_count * sizeof *scratch);
        if (!scratch)
            return HEFT_E_NOMEM;
        p->places_each_part = p->places_each_part || p->has_added_parts;
        heft_sort(p->order, scratch, p->order_count, is_larger, p->x);
        HEFT_TRY(heft_plan_place(p, 0, 1));
    }
    heft_out count = heft_out_counting();
    put_header(&count, p->x, 0);
    uint64_t start = s->header_end = HEFT_ST_LENGTH + count.total;
    bool fits = heft_align_up(&s->data, start, align);
    if (heft_plan_keep_data_start(p, &start))
        s->data = start;
    if (!fits || s->data > HEFT_ST_LENGTH + HEFT_ST_MAX_HEADER)
        return heft_error_plain(p->err, HEFT_E_LOSSY,
                                "the header needs %U bytes, padded to a multiple of %U, but "
                                "safetensors allows only 100000000",
                                count.total, align);
    p->header_bytes = s->data;
    heft_status st = heft_plan_place(p, s->data, 1);
    p->file_bytes = p->data_end;
    return st;
}

heft_status heft_st_plan(heft_plan *p)
{
    st_plan *s = heft_plan_alloc(p, sizeof *s);
    if (!s)
        return HEFT_E_NOMEM;
    p->priv = s;
    heft_status st = heft_loss_parts(p, "safetensors/parts", NULL, "safetensors");
    if (!st)
        st = heft_loss_attributes_beyond_metadata(p, "safetensors/attributes");
    if (!st)
        st = heft_meta_unique(p->x, "the metadata");
    if (!st)
        st = plan_metadata(p);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++)
        st = plan_tensor(p, t);
    if (st)
        return st;
    heft_plan_compact(p);
    uint32_t fnuz = heft_st_find_fnuz(p->x);
    if (fnuz != HEFT_NONE)
        st = heft_plan_loss(p, HEFT_NOTE, "safetensors/fnuz", fnuz, heft_st_fnuz_text);
    if (!st)
        st = heft_attributes_to_metadata(p);
    if (!st)
        st = plan_format_key(p);
    return st ? st : place_data(p, s);
}

heft_status heft_st_write_header(const heft_plan *p, heft_out *o)
{
    const st_plan *s = p->priv;
    heft_out_u64(o, s->data - HEFT_ST_LENGTH);
    put_header(o, p->x, s->data);
    heft_out_fill(o, ' ', s->data - s->header_end);
    return o->st;
}
