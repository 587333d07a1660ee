/* gguf_write.c - planning and writing of GGUF.  gguf.c shows the layout.
 *
 * Metadata, tensor records and data are written in the order of the model.  The data of every
 * tensor are padded to the alignment, as ggml requires.
 */
#include "format/gguf/gguf.h"
#include "format/losses.h"
#include "model/float.h"
#include "model/open_containers.h"
#include "model/values.h"
#include "model/vocab.h"

static bool is_number(const heft_value *v)
{
    return v->kind == HEFT_KIND_INT || v->kind == HEFT_KIND_UINT || v->kind == HEFT_KIND_FLOAT;
}

/* ---- numbers ---- */

/* Convert a number to the bits of an element type; false: the type cannot represent the number. */
static bool number_bits(uint64_t *bits, const heft_value *v, heft_dtype t)
{
    uint32_t width = 8 * heft_dtype_size(t);
    bool negative = v->kind == HEFT_KIND_INT && v->as.i < 0;
    uint64_t max = UINT64_MAX >> (64 - width + heft_dtype_is_signed_int(t));
    *bits = v->as.u; /* two's complement for an INT */
    if (v->kind != HEFT_KIND_FLOAT)
        return !heft_dtype_is_float(t) &&
               (negative ? heft_dtype_is_signed_int(t) && ~v->as.u <= max : v->as.u <= max);
    *bits = t == HEFT_F32 ? heft_f64_to_f32(heft_f64_bits(v->as.f)) : heft_f64_bits(v->as.f);
    return t == HEFT_F64 ||
           (t == HEFT_F32 && heft_f32_to_f64((uint32_t)*bits) == heft_f64_bits(v->as.f));
}

static heft_dtype type_of(const heft_value *v)
{
    static const heft_dtype preferred[] = { HEFT_U32, HEFT_I32, HEFT_U64, HEFT_I64, HEFT_F32 };
    uint64_t bits;
    if (heft_gguf_kind_of(v->stored) < HEFT_GGUF_KINDS && number_bits(&bits, v, v->stored))
        return v->stored;
    for (size_t i = 0; i < sizeof preferred / sizeof *preferred; i++)
        if (number_bits(&bits, v, preferred[i]))
            return preferred[i];
    return HEFT_F64;
}

/* Return an element type that represents all numbers of a list; HEFT_UNTYPED: none. */
static heft_dtype common_type(const heft_index *x, uint32_t list)
{
    static const heft_dtype wider[] = { HEFT_I32, HEFT_U64, HEFT_I64, HEFT_F64 };
    uint32_t end = heft_ix_value_next(x, list), next_wider = 0;
    heft_dtype t = type_of(heft_ix_value(x, list + 1));
    for (uint32_t k = list + 1; k < end;) {
        uint64_t bits;
        if (number_bits(&bits, heft_ix_value(x, k), t)) {
            k++;
        } else if (next_wider < sizeof wider / sizeof *wider) {
            t = wider[next_wider++];
            k = list + 1;
        } else {
            return HEFT_UNTYPED;
        }
    }
    return t;
}

/* ---- lists ---- */

typedef enum value_class { UNSUPPORTED, NUMBER, BOOLEAN, TEXT, ARRAY } value_class;

static value_class class_of(const heft_value *v)
{
    bool is_array = v->kind == HEFT_KIND_ARRAY;
    if (is_number(v))
        return NUMBER;
    if (v->kind == HEFT_KIND_BOOL)
        return BOOLEAN;
    if (v->kind == HEFT_KIND_STR)
        return heft_str_is_utf8(v->as.s) ? TEXT : UNSUPPORTED;
    if (v->kind == HEFT_KIND_BYTES)
        return v->stored == HEFT_U8 ? TEXT : ARRAY;
    if (v->kind == HEFT_KIND_LIST ||
        (is_array && heft_gguf_kind_of(v->as.array.dtype) < HEFT_GGUF_KINDS))
        return ARRAY;
    return UNSUPPORTED;
}

static uint32_t kind_of(value_class c, heft_dtype number)
{
    return c == NUMBER    ? heft_gguf_kind_of(number)
           : c == BOOLEAN ? heft_gguf_kind_of(HEFT_BOOL)
           : c == TEXT    ? (uint32_t)HEFT_GGUF_STRING
           : c == ARRAY   ? (uint32_t)HEFT_GGUF_ARRAY
                          : (uint32_t)HEFT_GGUF_KINDS;
}

/* Return the common kind of the elements of a list; HEFT_GGUF_KINDS: none.  An empty list counts
 * as texts. */
static uint32_t element_kind(const heft_index *x, uint32_t list)
{
    uint32_t end = heft_ix_value_next(x, list);
    if (list + 1 == end)
        return HEFT_GGUF_STRING;
    value_class common = class_of(heft_ix_value(x, list + 1));
    for (uint32_t k = list + 1; k < end; k = heft_ix_value_next(x, k))
        if (class_of(heft_ix_value(x, k)) != common)
            return HEFT_GGUF_KINDS;
    return kind_of(common, common == NUMBER ? common_type(x, list) : HEFT_UNTYPED);
}

static bool gguf_is_nested(const heft_index *x, uint32_t i)
{
    return heft_ix_value(x, i)->kind == HEFT_KIND_LIST && element_kind(x, i) == HEFT_GGUF_ARRAY;
}

/* Return true if GGUF can store metadata value i with all its children. */
static bool gguf_can_store(const heft_index *x, uint32_t i)
{
    if (class_of(heft_ix_value(x, i)) == UNSUPPORTED)
        return false;
    for (uint32_t k = i; k < heft_ix_value_next(x, i); k++)
        if (heft_value_nests(heft_ix_value(x, k)) &&
            (heft_ix_value(x, k)->kind == HEFT_KIND_MAP || element_kind(x, k) == HEFT_GGUF_KINDS))
            return false;
    return true;
}

/* ---- writing ---- */

/* Return true if metadata value i will be written as an array of arrays. */
static void gguf_put_text(heft_out *o, heft_str s)
{
    heft_out_u64(o, s.len);
    heft_out_str(o, s);
}

/* Write value i without the kind.  Of a list, write only the head, and set *inner to the kind of
 * the elements. */
static void put_payload(heft_out *o, const heft_index *x, uint32_t i, uint32_t kind,
                        uint32_t *inner)
{
    const heft_value *v = heft_ix_value(x, i);
    uint64_t bits = v->kind == HEFT_KIND_BOOL && v->as.b;
    if (v->kind == HEFT_KIND_LIST) {
        heft_out_u32(o, *inner = element_kind(x, i));
        heft_out_u64(o, v->as.container.count);
    } else if (v->kind == HEFT_KIND_ARRAY) {
        heft_out_u32(o, heft_gguf_kind_of(v->as.array.dtype));
        heft_out_u64(o, v->as.array.count);
        heft_out_bytes(o, v->as.array.ptr,
                       (size_t)v->as.array.count * heft_dtype_size(v->as.array.dtype));
    } else if (kind == HEFT_GGUF_ARRAY) { /* bytes become an array of u8 */
        heft_out_u32(o, heft_gguf_kind_of(HEFT_U8));
        gguf_put_text(o, v->as.s);
    } else if (kind == HEFT_GGUF_STRING) {
        gguf_put_text(o, v->as.s);
    } else {
        if (is_number(v))
            number_bits(&bits, v, heft_gguf_value_type(kind));
        for (uint32_t k = 0; k < heft_dtype_size(heft_gguf_value_type(kind)); k++)
            heft_out_u8(o, (uint8_t)(bits >> 8 * k));
    }
}

/* Write the kind of metadata value i, and the value with all children. */
static void gguf_put_value(heft_out *o, const heft_index *x, uint32_t i)
{
    heft_open_containers open; /* each with the kind of the children */
    const heft_value *v = heft_ix_value(x, i);
    uint32_t kind = kind_of(class_of(v), is_number(v) ? type_of(v) : HEFT_UNTYPED);
    heft_out_u32(o, kind);
    open.depth = 0;
    do {
        uint32_t inner = 0;
        v = heft_ix_value(x, i);
        put_payload(o, x, i++, heft_open_kind(&open, kind), &inner);
        if (v->kind == HEFT_KIND_LIST)
            heft_open_enter(&open, v->as.container.count, inner);
        else
            heft_open_leaf(&open);
        while (heft_open_leave(&open))
            continue;
    } while (open.depth);
}

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
    gguf_put_text(o, heft_lit(heft_gguf_tokens_key));
    heft_out_u32(o, HEFT_GGUF_ARRAY);
    heft_out_u32(o, HEFT_GGUF_STRING);
    heft_out_u64(o, heft_vocab_count(v));
    for (uint32_t i = 0; i < heft_vocab_count(v); i++)
        gguf_put_text(o, heft_vocab_at(v, i));
    for (int s = 0; s < HEFT_SPECIALS; s++) {
        uint32_t id = heft_vocab_special(v, (heft_special)s);
        if (id == HEFT_NONE)
            continue;
        gguf_put_text(o, heft_lit(heft_gguf_special_keys[s][0]));
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
           gguf_can_store(x, i) && heft_gguf_allows_split_value(heft_ix_value(x, i));
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
        if (gguf_is_nested(p->x, i))
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
    if (v->key.len > HEFT_GGUF_MAX_KEY && gguf_can_store(p->x, i))
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
        gguf_put_text(o, heft_lit(heft_gguf_alignment_key));
        heft_out_u32(o, u32);
        heft_out_u32(o, (uint32_t)g->align);
    }
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i)) {
        if (!is_stored_value(x, i, g))
            continue;
        gguf_put_text(o, heft_ix_value(x, i)->key);
        if (heft_str_is(heft_ix_value(x, i)->key, heft_gguf_alignment_key)) {
            heft_out_u32(o, u32);
            heft_out_u32(o, (uint32_t)g->align);
        } else {
            gguf_put_value(o, x, i);
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
    gguf_put_text(o, heft_ix_name(x, t));
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
