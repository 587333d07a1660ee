/* gguf_write.c - planning and writing of GGUF.  gguf.c shows the layout.
 *
 * Metadata, tensor records and data are written in the order of the model.  The data of every
 * tensor are padded to the alignment, as ggml requires.
 */
#include "format/attribute_metadata.h"
#include "format/gguf/gguf.h"
#include "format/losses.h"
#include "model/values.h"
#include "model/vocab.h"

typedef struct gguf_plan { /* heft_plan.priv */
    uint32_t version;
    uint64_t align, header_end, data_start;
    uint64_t entries;
    bool adds_alignment;  /* add general.alignment, which the metadata lack, as the first entry */
    bool replaces_tokens; /* write the tokens of the vocabulary after the other metadata */
} gguf_plan;

/* ---- the vocabulary ---- */

static bool has_same_tokens(const heft_index *x, const heft_vocab *v)
{
    const heft_value *list = heft_gguf_find_value(x, heft_gguf_tokens_key);
    uint32_t count = heft_vocab_count(v);
    if (!list || list->kind != HEFT_KIND_LIST || list->as.container.count != count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const heft_value *token = list + 1 + i;
        if (token->kind != HEFT_KIND_STR || !heft_str_eq(token->as.s, heft_vocab_at(v, i)))
            return false;
    }
    return true;
}

static bool has_same_special_ids(const heft_index *x, const heft_vocab *v)
{
    heft_ix_tokens t = { .count = heft_vocab_count(v) };
    bool same = true;
    heft_gguf_find_special(x, &t);
    for (int s = 0; s < HEFT_SPECIALS; s++) {
        uint32_t id = heft_vocab_special(v, (heft_special)s);
        same = same &&
               id == (t.has_special ? t.special[s] : heft_vocab_find_special(v, (heft_special)s));
    }
    return same;
}

static heft_status plan_vocab(heft_plan *p, gguf_plan *g)
{
    bool has_ids = false;      /* some special token has an id */
    bool matches_names = true; /* all ids, or the lack of ids, follow from the names of tokens */
    if (p->is_new_vocab)
        return heft_error_plain(
            p->err, HEFT_E_UNSUPPORTED,
            "the tokens of a GGUF file are metadata and cannot be edited as a vocabulary: use "
            "'heft convert --vocab' to replace the tokens, or --set to change the ids of special "
            "tokens, e.g. tokenizer.ggml.padding_token_id");
    if (p->existing || !p->vocab ||
        (has_same_tokens(p->x, p->vocab) && has_same_special_ids(p->x, p->vocab)))
        return HEFT_OK;
    g->replaces_tokens = true;
    for (int s = 0; s < HEFT_SPECIALS; s++) {
        uint32_t id = heft_vocab_special(p->vocab, (heft_special)s);
        has_ids = has_ids || id != HEFT_NONE;
        matches_names = matches_names && id == heft_vocab_find_special(p->vocab, (heft_special)s);
    }
    if (heft_gguf_find_value(p->x, heft_gguf_tokens_key))
        HEFT_TRY(heft_plan_loss(p, HEFT_NOTE, "gguf/vocab", HEFT_NONE,
                                "the metadata's tokens are replaced by the vocabulary"));
    if (!has_ids && !matches_names)
        HEFT_TRY(
            heft_plan_loss(p, HEFT_WARNING, "gguf/special", HEFT_NONE,
                           "ids of special tokens are left out: GGUF cannot state that there are "
                           "none, and readers will find special tokens by name"));
    return HEFT_OK;
}

static void put_tokens(heft_out *o, const heft_vocab *v)
{
    heft_gguf_put_text(o, heft_lit(heft_gguf_tokens_key));
    heft_out_u32(o, HEFT_GGUF_ARRAY);
    heft_out_u32(o, HEFT_GGUF_STRING);
    heft_out_u64(o, heft_vocab_count(v));
    for (uint32_t i = 0; i < heft_vocab_count(v); i++)
        heft_gguf_put_text(o, heft_vocab_at(v, i));
    for (int s = 0; s < HEFT_SPECIALS; s++) {
        uint32_t id = heft_vocab_special(v, (heft_special)s);
        if (id == HEFT_NONE)
            continue;
        heft_gguf_put_text(o, heft_lit(heft_gguf_special_keys[s][0]));
        heft_out_u32(o, heft_gguf_kind_of(HEFT_U32));
        heft_out_u32(o, id);
    }
}

/* ---- metadata ---- */

static bool is_stored_value(const heft_index *x, uint32_t i, const gguf_plan *g)
{
    heft_str key = heft_ix_value(x, i)->key;
    if (heft_str_is(key, heft_gguf_alignment_key))
        return true;
    if (g->replaces_tokens && (heft_str_is(key, heft_gguf_tokens_key) || heft_gguf_is_special(key)))
        return false;
    return key.len && key.len <= HEFT_GGUF_MAX_KEY && heft_str_is_utf8(key) &&
           heft_gguf_can_store(x, i) && heft_gguf_allows_split_value(heft_ix_value(x, i));
}

static heft_status plan_value(heft_plan *p, uint32_t i, gguf_plan *g)
{
    const heft_value *v = heft_ix_value(p->x, i);
    bool is_vocab_key = heft_str_is(v->key, heft_gguf_tokens_key) || heft_gguf_is_special(v->key);
    if (is_stored_value(p->x, i, g)) {
        g->entries++;
        if (v->kind == HEFT_KIND_BYTES && v->stored != HEFT_U8)
            return heft_loss_report(p, HEFT_NOTE, "gguf/metadata-u8", HEFT_NONE,
                                    "metadata %q becomes an array of u8", v->key);
        if (heft_gguf_is_nested(p->x, i))
            return heft_loss_report(p, HEFT_NOTE, "gguf/nested", HEFT_NONE,
                                    "metadata %q: ggml cannot read arrays of arrays", v->key);
        return HEFT_OK;
    }
    if (g->replaces_tokens && is_vocab_key)
        return HEFT_OK;
    if (!heft_gguf_allows_split_value(v))
        return heft_loss_report(p, HEFT_WARNING, "gguf/metadata", HEFT_NONE,
                                "metadata %q is left out: in GGUF the value is an unsigned integer",
                                v->key);
    if (v->key.len > HEFT_GGUF_MAX_KEY && heft_gguf_can_store(p->x, i))
        return heft_loss_length(p, "gguf/metadata-length", v->key, "key", v->key.len,
                                HEFT_GGUF_MAX_KEY, "GGUF");
    return heft_loss_report(p, HEFT_WARNING, "gguf/metadata", HEFT_NONE,
                            "metadata %q is left out: GGUF stores only numbers, booleans, texts "
                            "and arrays of a single kind, under keys of 1 to 65535 bytes",
                            v->key);
}

/* Return the largest alignment up to `max` that needs no padding between an opaque tensor and
 * the next tensor, even an empty tensor: readers would take the padding for a part of the opaque
 * tensor.  A final opaque tensor is never padded. */
static uint64_t limit_alignment(const heft_index *x, uint64_t max)
{
    uint64_t lengths = 0; /* bitwise OR of the lengths of opaque tensors */
    for (uint32_t t = 0; t + 1 < heft_ix_tensors(x); t++)
        if (heft_gguf_is_opaque(x, t))
            lengths |= heft_ix_part_row_at(x, heft_ix_row(x, t)->first_part)->length;
    while (max > HEFT_GGUF_MIN_ALIGN && lengths & (max - 1))
        max /= 2;
    return max;
}

static heft_status plan_alignment(heft_plan *p, gguf_plan *g)
{
    const heft_value *v = heft_gguf_find_value(p->x, heft_gguf_alignment_key);
    uint64_t current = heft_gguf_alignment(p->x);
    g->align = p->requested_align ? p->requested_align : current ? current : HEFT_GGUF_ALIGN;
    if (g->align < HEFT_GGUF_MIN_ALIGN && !p->existing)
        g->align = HEFT_GGUF_MIN_ALIGN;
    uint64_t requested = g->align;
    if (requested <= HEFT_GGUF_MAX_ALIGN && !p->existing)
        g->align = limit_alignment(p->x, requested);
    g->adds_alignment = !v && g->align != HEFT_GGUF_ALIGN;
    g->entries = g->adds_alignment;
    if (g->align > HEFT_GGUF_MAX_ALIGN)
        return heft_error_plain(p->err, HEFT_E_ARGUMENT,
                                "an alignment of %U exceeds the limit for GGUF files, %U", g->align,
                                (uint64_t)HEFT_GGUF_MAX_ALIGN);
    if (g->align < requested) {
        HEFT_TRY(heft_loss_report(
            p, HEFT_NOTE, "gguf/alignment", HEFT_NONE,
            "the alignment is reduced to %U: padding would become part of opaque tensors",
            g->align));
    }
    if (v && g->align != current)
        return heft_loss_report(p, HEFT_NOTE, "gguf/alignment", HEFT_NONE,
                                "general.alignment becomes %U", g->align);
    return HEFT_OK;
}

static heft_status plan_metadata(heft_plan *p, gguf_plan *g)
{
    heft_status st = plan_alignment(p, g);
    if (!st)
        st = plan_vocab(p, g);
    for (uint32_t i = 0; i < p->x->values.len && !st; i = heft_ix_value_next(p->x, i))
        st = plan_value(p, i, g);
    g->entries += g->replaces_tokens;
    for (int s = 0; g->replaces_tokens && s < HEFT_SPECIALS; s++)
        g->entries += heft_vocab_special(p->vocab, (heft_special)s) != HEFT_NONE;
    return st;
}

static void put_metadata(heft_out *o, const heft_plan *p, const gguf_plan *g)
{
    const heft_index *x = p->x;
    uint32_t u32 = heft_gguf_kind_of(HEFT_U32);
    if (g->adds_alignment) {
        heft_gguf_put_text(o, heft_lit(heft_gguf_alignment_key));
        heft_out_u32(o, u32);
        heft_out_u32(o, (uint32_t)g->align);
    }
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i)) {
        if (!is_stored_value(x, i, g))
            continue;
        heft_gguf_put_text(o, heft_ix_value(x, i)->key);
        if (heft_str_is(heft_ix_value(x, i)->key, heft_gguf_alignment_key)) {
            heft_out_u32(o, u32);
            heft_out_u32(o, (uint32_t)g->align);
        } else {
            heft_gguf_put_value(o, x, i);
        }
    }
    if (g->replaces_tokens)
        put_tokens(o, p->vocab);
}

/* ---- tensors ---- */

/* Return the reason why a tensor cannot be stored, or NULL. */
static const char *unsupported_reason(const heft_index *x, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    const uint64_t *dims = heft_ix_dims(x, t);
    uint64_t elements;
    bool opaque = heft_gguf_is_opaque(x, t) && row->part_count == 1;
    if (opaque && heft_gguf_type_number(x, t) == UINT32_MAX)
        return "an opaque tensor without ggml's type number cannot be stored in GGUF";
    if (!opaque && !heft_loss_is_plain(x, t))
        return "only dense tensors can be stored in GGUF";
    if (heft_str_has_nul(heft_ix_name(x, t)))
        return "a name with a NUL byte cannot be stored in GGUF (rename the tensor)";
    if (!heft_product(&elements, dims, row->rank) || elements > INT64_MAX)
        return "more than 2^63 - 1 elements cannot be stored in GGUF";
    for (uint32_t i = 0; i < row->rank; i++)
        if (dims[i] > INT64_MAX)
            return "a dimension beyond 2^63 - 1 cannot be stored in GGUF";
    if (!opaque && !heft_dtype_fills_blocks(row->dtype, row->rank ? dims[row->rank - 1] : 1))
        return "its rows are not a multiple of the block size, as GGUF requires";
    return NULL;
}

static heft_status plan_tensor(heft_plan *p, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    const char *reason = unsupported_reason(p->x, t);
    if (reason)
        return heft_loss_tensor(p, "gguf/tensor", t, reason);
    if (heft_gguf_type_number(p->x, t) == UINT32_MAX)
        return heft_loss_type(p, "gguf/dtype", t, "GGUF");
    heft_status st = HEFT_OK;
    if (row->name_len >= HEFT_GGUF_NAME_BUFFER)
        st = heft_loss_report(p, p->existing ? HEFT_NOTE : HEFT_WARNING, "gguf/long-name", t,
                              "its name has %U bytes, and ggml loads no file with a name of more "
                              "than 63 (--rename shortens it)",
                              (uint64_t)row->name_len);
    if (st || row->rank <= HEFT_GGUF_MAX_RANK)
        return st ? st : heft_loss_scalar(p, "gguf/rank-0", t, "GGUF");
    heft_plan_drop(p, t);
    return heft_loss_report(p, HEFT_FAULT, "gguf/rank", t,
                            "rank %U: a tensor in GGUF has at most 4 dimensions",
                            (uint64_t)row->rank);
}

static void put_tensor(heft_out *o, const heft_index *x, uint32_t t, uint64_t data_start)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    const uint64_t *dims = heft_ix_dims(x, t);
    heft_gguf_put_text(o, heft_ix_name(x, t));
    heft_out_u32(o, row->rank);
    for (uint32_t i = row->rank; i-- > 0;)
        heft_out_u64(o, dims[i]);
    heft_out_u32(o, heft_gguf_type_number(x, t));
    heft_out_u64(o, heft_ix_part_row_at(x, row->first_part)->offset - data_start);
}

/* ---- entry points ---- */

static void put_header(heft_out *o, const heft_plan *p, const gguf_plan *g)
{
    heft_out_str(o, heft_lit("GGUF"));
    heft_out_u32(o, g->version);
    heft_out_u64(o, heft_ix_tensors(p->x));
    heft_out_u64(o, g->entries);
    put_metadata(o, p, g);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++)
        put_tensor(o, p->x, t, g->data_start);
}

static heft_status plan_offsets(heft_plan *p, gguf_plan *g)
{
    heft_out count = heft_out_counting();
    put_header(&count, p, g);
    g->header_end = count.total;
    if (!heft_align_up(&g->data_start, g->header_end, g->align))
        return heft_error_plain(p->err, HEFT_E_LOSSY, "the file would be larger than 2^64 bytes");
    p->align = g->align;
    p->header_bytes = g->data_start;
    /* Readers extend a final opaque tensor to the end of the file: padding would enlarge the
     * tensor. */
    uint32_t t = heft_ix_tensors(p->x);
    while (t && !heft_ix_part_row_at(p->x, heft_ix_row(p->x, t - 1)->first_part)->length)
        t--;
    bool is_opaque_last = t && heft_gguf_is_opaque(p->x, t - 1);
    heft_status st = heft_plan_place(p, g->data_start, is_opaque_last ? 1 : g->align);
    p->file_bytes = p->data_end;
    return st;
}

heft_status heft_gguf_plan(heft_plan *p)
{
    gguf_plan *g = heft_plan_alloc(p, sizeof *g);
    if (!g)
        return HEFT_E_NOMEM;
    p->priv = g;
    heft_str version = heft_lit(p->version ? p->version : "3");
    g->version = heft_str_is(version, "2") ? 2 : 3;
    if (g->version == 3 && !heft_str_is(version, "3"))
        return heft_error_plain(p->err, HEFT_E_ARGUMENT,
                                "GGUF version %q cannot be written, only 3 and 2", version);
    heft_status st = heft_loss_parts(p, "gguf/parts", "vocab", "GGUF");
    if (!st)
        st = heft_loss_attributes_beyond_metadata(p, "gguf/attributes");
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++)
        st = plan_tensor(p, t);
    if (st)
        return st;
    heft_plan_compact(p);
    st = heft_attributes_to_metadata(p);
    if (!st)
        st = heft_meta_unique(p->x, "the metadata");
    if (!st)
        st = plan_metadata(p, g);
    return st ? st : plan_offsets(p, g);
}

heft_status heft_gguf_write_header(const heft_plan *p, heft_out *o)
{
    const gguf_plan *g = p->priv;
    put_header(o, p, g);
    heft_out_fill(o, 0, g->data_start - g->header_end);
    return o->st;
}
