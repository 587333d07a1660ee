/* gguf_write.c - planning and writing of GGUF; gguf.c shows the layout.
 *
 * The header lists the metadata and the tensors in the order of the model, and the data follow in that
 * order, each padded to the alignment, as ggml requires.
 */
#include "format/attribute_metadata.h"
#include "format/gguf/gguf.h"
#include "format/losses.h"
#include "model/names.h"
#include "model/vocab.h"

typedef struct gguf_plan { /* heft_plan.priv */
    uint32_t version;
    uint64_t align, header_end, data; /* data: where these begin, behind a padding */
    uint64_t entries;
    bool puts_alignment; /* in front: the metadata say nothing of it */
    bool puts_tokens; /* behind: the vocabulary is another than the metadata's, or they have none */
} gguf_plan;

/* ---- the vocabulary ---- */

static bool same_tokens(const heft_index *x, const heft_vocab *v)
{
    const heft_value *list = heft_gguf_find(x, heft_gguf_tokens_key);
    uint32_t count = heft_vocab_count(v);
    if (!list || list->kind != HEFT_KIND_LIST || list->as.container.count != count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const heft_value *token = list + 1 + i;
        if (token->kind != HEFT_KIND_STR || !heft_str_eq(token->as.s, heft_vocab_token(v, i)))
            return false;
    }
    return true;
}

static bool same_special(const heft_index *x, const heft_vocab *v)
{
    heft_ix_tokens t = { .count = heft_vocab_count(v) };
    bool same = true;
    heft_gguf_find_special(x, &t);
    for (int s = 0; s < HEFT_SPECIALS; s++) {
        uint32_t id = heft_vocab_special(v, (heft_special)s);
        same = same && id == (t.has_special ? t.special[s] : heft_vocab_named(v, (heft_special)s));
    }
    return same;
}

static heft_status plan_vocab(heft_plan *p, gguf_plan *g)
{
    bool any = false,
         by_name = true; /* some special token has an id; all are where their names are */
    if (p->is_new_vocab)
        return heft_error_plain(p->err, HEFT_E_UNSUPPORTED,
                                "the tokens of a GGUF file are metadata, which are not edited as a "
                                "vocabulary: 'heft convert --vocab' writes another, and --set the "
                                "ids of special tokens, as tokenizer.ggml.padding_token_id");
    if (p->existing || !p->vocab || (same_tokens(p->x, p->vocab) && same_special(p->x, p->vocab)))
        return HEFT_OK;
    g->puts_tokens = true;
    for (int s = 0; s < HEFT_SPECIALS; s++) {
        uint32_t id = heft_vocab_special(p->vocab, (heft_special)s);
        any = any || id != HEFT_NONE;
        by_name = by_name && id == heft_vocab_named(p->vocab, (heft_special)s);
    }
    heft_status st = HEFT_OK;
    if (heft_gguf_find(p->x, heft_gguf_tokens_key))
        st = heft_plan_loss(p, HEFT_NOTE, "gguf/vocab", HEFT_NONE,
                            "the metadata's tokens are replaced by the vocabulary");
    if (!st && !any && !by_name)
        st = heft_plan_loss(p, HEFT_WARNING, "gguf/special", HEFT_NONE,
                            "ids of special tokens are left out: that there are none cannot be "
                            "said, and readers go by their names");
    return st;
}

static void put_tokens(heft_out *o, const heft_vocab *v)
{
    heft_gguf_put_text(o, heft_lit(heft_gguf_tokens_key));
    heft_out_u32(o, HEFT_GGUF_ARRAY);
    heft_out_u32(o, HEFT_GGUF_STRING);
    heft_out_u64(o, heft_vocab_count(v));
    for (uint32_t i = 0; i < heft_vocab_count(v); i++)
        heft_gguf_put_text(o, heft_vocab_token(v, i));
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

static bool is_put(const heft_index *x, uint32_t i, const gguf_plan *g)
{
    heft_str key = heft_ix_value(x, i)->key;
    if (heft_str_is(key, heft_gguf_alignment_key))
        return true;
    if (g->puts_tokens && (heft_str_is(key, heft_gguf_tokens_key) || heft_gguf_is_special(key)))
        return false;
    return key.len && key.len <= HEFT_GGUF_KEY && heft_str_is_utf8(key) &&
           heft_gguf_can_carry(x, i);
}

static heft_status plan_value(heft_plan *p, uint32_t i, gguf_plan *g)
{
    const heft_value *v = heft_ix_value(p->x, i);
    bool tokens = heft_str_is(v->key, heft_gguf_tokens_key) || heft_gguf_is_special(v->key);
    if (is_put(p->x, i, g)) {
        g->entries++;
        if (v->kind == HEFT_KIND_BYTES && v->stored != HEFT_U8)
            return heft_loss_report(p, HEFT_NOTE, "gguf/metadata-u8", HEFT_NONE,
                                    "metadata %q becomes an array of u8", v->key);
        if (heft_gguf_is_nested(p->x, i))
            return heft_loss_report(p, HEFT_NOTE, "gguf/nested", HEFT_NONE,
                                    "metadata %q: ggml does not read arrays of arrays", v->key);
        return HEFT_OK;
    }
    if (g->puts_tokens && tokens)
        return HEFT_OK;
    if (v->key.len > HEFT_GGUF_KEY && heft_gguf_can_carry(p->x, i))
        return heft_loss_length(p, "gguf/metadata-length", v->key, "key", v->key.len, HEFT_GGUF_KEY,
                                "GGUF");
    return heft_loss_report(p, HEFT_WARNING, "gguf/metadata", HEFT_NONE,
                            "metadata %q is left out: GGUF stores numbers, texts and arrays of one "
                            "kind, under keys of 1 to 65535 bytes",
                            v->key);
}

/* The largest alignment up to `most` that leaves no room between an opaque tensor and the next, perhaps empty, one: it
 * would be read as part of the first.  Behind the last tensor there is none anyway. */
static uint64_t keep_opaque_sizes(const heft_index *x, uint64_t most)
{
    uint64_t lengths = 0; /* their bits together */
    for (uint32_t t = 0; t + 1 < heft_ix_tensors(x); t++)
        if (heft_gguf_is_opaque(x, t))
            lengths |= heft_ix_part_row_at(x, heft_ix_row(x, t)->first_part)->length;
    while (most > HEFT_GGUF_LEAST_ALIGN && lengths & (most - 1))
        most /= 2;
    return most;
}

static heft_status plan_alignment(heft_plan *p, gguf_plan *g)
{
    const heft_value *v = heft_gguf_find(p->x, heft_gguf_alignment_key);
    uint64_t said = heft_gguf_alignment(p->x);
    g->align = p->requested_align ? p->requested_align : said ? said : HEFT_GGUF_ALIGN;
    if (g->align < HEFT_GGUF_LEAST_ALIGN && !p->existing)
        g->align = HEFT_GGUF_LEAST_ALIGN;
    uint64_t wanted = g->align;
    if (wanted <= HEFT_GGUF_MAX_ALIGN && !p->existing)
        g->align = keep_opaque_sizes(p->x, wanted);
    g->puts_alignment = !v && g->align != HEFT_GGUF_ALIGN;
    g->entries = g->puts_alignment;
    if (g->align > HEFT_GGUF_MAX_ALIGN)
        return heft_error_plain(p->err, HEFT_E_ARGUMENT,
                                "an alignment of %U is more than GGUF files have here, %U",
                                g->align, (uint64_t)HEFT_GGUF_MAX_ALIGN);
    if (g->align < wanted) {
        heft_status st =
            heft_loss_report(p, HEFT_NOTE, "gguf/alignment", HEFT_NONE,
                             "the alignment is %U only: more would add to the bytes of "
                             "opaque tensors",
                             g->align);
        if (st)
            return st;
    }
    if (v && g->align != said)
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
    g->entries += g->puts_tokens;
    for (int s = 0; g->puts_tokens && s < HEFT_SPECIALS; s++)
        g->entries += heft_vocab_special(p->vocab, (heft_special)s) != HEFT_NONE;
    return st;
}

static void put_metadata(heft_out *o, const heft_plan *p, const gguf_plan *g)
{
    const heft_index *x = p->x;
    uint32_t u32 = heft_gguf_kind_of(HEFT_U32);
    if (g->puts_alignment) {
        heft_gguf_put_text(o, heft_lit(heft_gguf_alignment_key));
        heft_out_u32(o, u32);
        heft_out_u32(o, (uint32_t)g->align);
    }
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i)) {
        if (!is_put(x, i, g))
            continue;
        heft_gguf_put_text(o, heft_ix_value(x, i)->key);
        if (heft_str_is(heft_ix_value(x, i)->key, heft_gguf_alignment_key)) {
            heft_out_u32(o, u32);
            heft_out_u32(o, (uint32_t)g->align);
        } else {
            heft_gguf_put_value(o, x, i);
        }
    }
    if (g->puts_tokens)
        put_tokens(o, p->vocab);
}

/* ---- tensors ---- */

/* Why a tensor cannot be carried, or NULL. */
static const char *obstacle(const heft_index *x, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    const uint64_t *dims = heft_ix_dims(x, t);
    uint64_t elements;
    bool opaque = heft_gguf_is_opaque(x, t) && row->part_count == 1;
    if (opaque && heft_gguf_type_number(x, t) == UINT32_MAX)
        return "opaque blocks without the number of their type cannot be stored in GGUF";
    if (!opaque && !heft_loss_is_plain(x, t))
        return "only dense tensors can be stored in GGUF";
    if (heft_str_has_nul(heft_ix_name(x, t)))
        return "a name with a NUL cannot be stored in GGUF";
    if (!heft_product(&elements, dims, row->rank) || elements > INT64_MAX)
        return "more than 2^63 - 1 elements cannot be stored in GGUF";
    for (uint32_t i = 0; i < row->rank; i++)
        if (dims[i] > INT64_MAX)
            return "a dimension beyond 2^63 - 1 cannot be stored in GGUF";
    if (!opaque && !heft_dtype_fills_blocks(row->dtype, row->rank ? dims[row->rank - 1] : 1))
        return "its rows are no whole blocks, as GGUF requires";
    return NULL;
}

static heft_status plan_tensor(heft_plan *p, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    const char *why = obstacle(p->x, t);
    if (why)
        return heft_loss_tensor(p, "gguf/tensor", t, why);
    if (heft_gguf_type_number(p->x, t) == UINT32_MAX)
        return heft_loss_type(p, "gguf/dtype", t, "GGUF");
    heft_status st = HEFT_OK;
    if (row->name_len >= HEFT_GGUF_NAME)
        st = heft_loss_report(p, HEFT_NOTE, "gguf/long-name", t,
                              "its name has %U bytes, ggml reads no more than 63",
                              (uint64_t)row->name_len);
    if (st || row->rank <= HEFT_GGUF_RANK)
        return st ? st : heft_loss_scalar(p, "gguf/rank-0", t, "GGUF");
    heft_plan_drop(p, t);
    return heft_loss_report(p, HEFT_FAULT, "gguf/rank", t,
                            "rank %U: a tensor in GGUF has at most 4 dimensions",
                            (uint64_t)row->rank);
}

static void put_tensor(heft_out *o, const heft_index *x, uint32_t t, uint64_t data)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    const uint64_t *dims = heft_ix_dims(x, t);
    heft_gguf_put_text(o, heft_ix_name(x, t));
    heft_out_u32(o, row->rank);
    for (uint32_t i = row->rank; i-- > 0;)
        heft_out_u64(o, dims[i]);
    heft_out_u32(o, heft_gguf_type_number(x, t));
    heft_out_u64(o, heft_ix_part_row_at(x, row->first_part)->offset - data);
}

/* ---- what the format is called with ---- */

static void put_header(heft_out *o, const heft_plan *p, const gguf_plan *g)
{
    heft_out_str(o, heft_lit("GGUF"));
    heft_out_u32(o, g->version);
    heft_out_u64(o, heft_ix_tensors(p->x));
    heft_out_u64(o, g->entries);
    put_metadata(o, p, g);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++)
        put_tensor(o, p->x, t, g->data);
}

static heft_status place(heft_plan *p, gguf_plan *g)
{
    heft_out count = heft_out_counting();
    put_header(&count, p, g);
    g->header_end = count.total;
    if (!heft_align_up(&g->data, g->header_end, g->align))
        return heft_error_plain(p->err, HEFT_E_LOSSY, "the file would pass 2^64 bytes");
    p->align = g->align;
    p->header_bytes = g->data;
    /* An opaque tensor that is the last reaches to the end of the file: padding would enlarge it. */
    uint32_t t = heft_ix_tensors(p->x);
    while (t && !heft_ix_part_row_at(p->x, heft_ix_row(p->x, t - 1)->first_part)->length)
        t--;
    bool ends_opaque = t && heft_gguf_is_opaque(p->x, t - 1);
    heft_status st = heft_plan_place(p, g->data, ends_opaque ? 1 : g->align);
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
                                "GGUF version %q is not written here (there are 3 and 2)", version);
    heft_status st = heft_loss_parts(p, "gguf/parts", "vocab");
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
    return st ? st : place(p, g);
}

heft_status heft_gguf_write_header(const heft_plan *p, heft_out *o)
{
    const gguf_plan *g = p->priv;
    put_header(o, p, g);
    heft_out_fill(o, 0, g->data - g->header_end);
    return o->st;
}
