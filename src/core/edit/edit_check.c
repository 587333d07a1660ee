/* edit_check.c - compare an edited file with the file before, before any byte changes: open the
 * planned file and compare the models.  This finds a writer that drops or alters something, in
 * any format. */
#include "base/sort.h"
#include "core/check/source_verifier.h"
#include "core/edit/edit.h"
#include "core/write/plan/plan.h"
#include "model/values.h"

/* ---- checksums that cover no data ---- */

static heft_part_use use_no_part(void *ctx, uint32_t part)
{
    (void)ctx;
    (void)part;
    return HEFT_PART_UNUSED;
}

heft_status heft_edit_check_checksums(heft_ledger *w, const heft_file *f, heft_error *err)
{
    HEFT_TRY(heft_source_verifier_begin(w, f, false, use_no_part, NULL, err));
    return heft_ledger_require(w, true, err);
}

/* ---- the edited file as a source ---- */

typedef struct edited_source {
    heft_source base;
    const heft_edit_job *g;
} edited_source;

static heft_status read_edited(heft_source *s, uint64_t at, void *buf, size_t len, heft_error *err)
{
    return heft_edit_bytes(((const edited_source *)s)->g, at, buf, len, err);
}

static void close_edited(heft_source *s)
{
    (void)s;
}

static const heft_source_ops edited_ops = { .size = sizeof(heft_source_ops),
                                            .read = read_edited,
                                            .close = close_edited };

/* ---- comparison of values ---- */

static heft_status model_differs(const heft_edit_job *g, const char *what)
{
    return heft_error_plain(g->err, HEFT_E_UNSUPPORTED,
                            "the edit would change more than requested: %s", what);
}

static heft_status tensor_differs(const heft_edit_job *g, uint32_t t, const char *what)
{
    return heft_error_plain(g->err, HEFT_E_UNSUPPORTED,
                            "the edit would change more than requested: tensor %q: %s",
                            heft_ix_name(&g->in->x, t), what);
}

static bool same_value(const heft_value *a, const heft_value *b)
{
    return a->stored == b->stored && heft_value_same(a, b);
}

/* A sequence of values: metadata, or the attributes of a tensor. */
typedef struct values {
    const uint8_t *first;
    size_t step; /* bytes from a value to the next */
    uint32_t base, count;
    uint32_t *top, top_count; /* top-level values sorted by key, counted from base */
} values;

static const heft_value *value(const values *v, uint32_t i)
{
    return (const heft_value *)(const void *)(v->first + i * v->step);
}

static uint32_t next_value(const values *v, uint32_t i)
{
    const heft_value *own = value(v, i);
    return heft_value_nests(own) ? own->as.container.end - v->base : i + 1;
}

static bool sorts_by_key(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_str_order(value(ctx, a)->key, value(ctx, b)->key) < 0;
}

static bool sort_values(heft_edit_job *g, values *v)
{
    v->top = heft_mem_alloc(&g->e->mem, 2 * (size_t)(v->count + 1) * sizeof *v->top);
    if (!v->top)
        return false;
    for (uint32_t i = 0; i < v->count; i = next_value(v, i))
        v->top[v->top_count++] = i;
    heft_sort(v->top, v->top + v->count, v->top_count, sorts_by_key, v);
    return true;
}

static void free_values(heft_edit_job *g, values *v)
{
    heft_mem_free(&g->e->mem, v->top, 2 * (size_t)(v->count + 1) * sizeof *v->top);
}

static bool same_tree(const values *a, uint32_t i, const values *b, uint32_t j)
{
    uint32_t count = next_value(a, i) - i;
    if (count != next_value(b, j) - j)
        return false;
    for (uint32_t k = 0; k < count; k++)
        if (!same_value(value(a, i + k), value(b, j + k)))
            return false;
    return true;
}

static bool is_set(const heft_edit_job *g, heft_str key)
{
    return heft_edit_sets(g, key) || heft_edit_changes_map(g, key);
}

/* Return true if b equals a.  is_edited: ignore values that the edit sets or removes, and a
 * number map that changes. */
static bool same_values(const heft_edit_job *g, const values *a, const values *b, bool is_edited)
{
    uint32_t i = 0, j = 0;
    for (;;) {
        while (
            is_edited && i < a->top_count &&
            (is_set(g, value(a, a->top[i])->key) || heft_edit_unsets(g, value(a, a->top[i])->key)))
            i++;
        while (is_edited && j < b->top_count && is_set(g, value(b, b->top[j])->key))
            j++;
        if (i == a->top_count || j == b->top_count)
            return i == a->top_count && j == b->top_count;
        if (!same_tree(a, a->top[i++], b, b->top[j++]))
            return false;
    }
}

static heft_status compare_values(heft_edit_job *g, values *a, values *b, bool is_edited,
                                  bool *same)
{
    bool has_memory = sort_values(g, a) && sort_values(g, b);
    *same = has_memory && same_values(g, a, b, is_edited);
    free_values(g, a);
    free_values(g, b);
    return has_memory ? HEFT_OK : heft_error_no_memory(g->err, "to check the edit");
}

static values attributes_of(const heft_index *x, uint32_t t)
{
    const heft_ix_attr_row *rows = x->attrs.ptr;
    uint32_t from = heft_ix_row(x, t)->attrs, end;
    if (!from--)
        return (values){ .count = 0 };
    for (end = from; end < x->attrs.len && rows[end].tensor == t;)
        end++;
    return (values){ .first = (const uint8_t *)&rows[from].value,
                     .step = sizeof *rows,
                     .base = from,
                     .count = end - from };
}

/* ---- metadata ---- */

/* Accept a number that is stored as text, and a boolean that is stored as a number. */
static bool is_equivalent(const heft_value *requested, const heft_value *edited)
{
    char text[2][HEFT_F64_TEXT];
    heft_value v = *requested;
    heft_str a, b;
    if (v.kind == HEFT_KIND_BOOL &&
        (edited->kind == HEFT_KIND_INT || edited->kind == HEFT_KIND_UINT))
        return edited->as.u == v.as.b;
    v.stored = edited->stored;
    return same_value(&v, edited) || (heft_value_text(&a, requested, text[0]) &&
                                      heft_value_text(&b, edited, text[1]) && heft_str_eq(a, b));
}

static bool is_equivalent_tree(const heft_value *requested, const heft_value *edited)
{
    if (requested->kind != HEFT_KIND_LIST)
        return is_equivalent(requested, edited);
    uint32_t count = requested->as.container.count;
    bool is = edited->kind == HEFT_KIND_LIST && edited->as.container.count == count;
    for (uint32_t k = 1; is && k <= count; k++) /* the scalars follow the list */
        is = is_equivalent(requested + k, edited + k);
    return is;
}

static values numbers_of(const heft_edit_job *g, const heft_index *x)
{
    heft_str map = heft_lit(g->in->format->number_map);
    const heft_value *v = heft_edit_find(x, g->in->format, map);
    if (!v || v->kind != HEFT_KIND_MAP)
        return (values){ .count = 0 };
    uint32_t base = (uint32_t)(v - heft_ix_value(x, 0)) + 1;
    return (values){ .first = (const uint8_t *)(v + 1),
                     .step = sizeof *v,
                     .base = base,
                     .count = v->as.container.end - base };
}

static heft_status check_metadata(heft_edit_job *g, const heft_file *edited)
{
    for (size_t i = 0; i < g->opt.set_count; i = heft_set_next(g->opt.set, i)) {
        heft_str key = g->opt.set[i].key;
        const heft_value *requested = heft_edit_find(&g->p.x, g->in->format, key);
        const heft_value *is = heft_edit_find(&edited->x, g->in->format, key);
        if (!requested || !is || !is_equivalent_tree(requested, is))
            return heft_error_plain(
                g->err, HEFT_E_UNSUPPORTED,
                "metadata %q cannot be set: it would be read back as another value", key);
    }
    const char *map = g->in->format->number_map;
    bool same = true;
    if (map && heft_edit_changes_map(g, heft_lit(map))) {
        values a = numbers_of(g, &g->p.x), b = numbers_of(g, &edited->x);
        HEFT_TRY(compare_values(g, &a, &b, false, &same));
        if (!same)
            return model_differs(g, map);
    }
    const heft_vec *before = &g->in->x.values, *after = &edited->x.values;
    values a = { .first = before->ptr, .step = sizeof(heft_value), .count = before->len };
    values b = { .first = after->ptr, .step = sizeof(heft_value), .count = after->len };
    HEFT_TRY(compare_values(g, &a, &b, true, &same));
    return same ? HEFT_OK : model_differs(g, "metadata");
}

/* ---- tensors ---- */

static bool same_part(const heft_edit_job *g, uint32_t part, const heft_index *edited,
                      uint32_t other)
{
    const heft_index *x = &g->in->x;
    const heft_ix_part_row *a = heft_ix_part_row_at(x, part),
                           *b = heft_ix_part_row_at(edited, other);
    bool is_in_place = !a->stored || b->offset == heft_ix_part_row_at(&g->p.x, part)->offset;
    return is_in_place && a->stored == b->stored && a->length == b->length &&
           a->dtype == b->dtype && a->encoding == b->encoding && a->flags == b->flags &&
           heft_str_eq(heft_ix_digest_of(x, part), heft_ix_digest_of(edited, other));
}

static bool same_base_id(const heft_edit_job *g, uint32_t t, const heft_index *edited,
                         uint32_t other)
{
    static const uint8_t none[16] = { 0 };
    const heft_index *x = &g->in->x;
    const uint8_t *before = heft_ix_base_id_at(x, t), *after = heft_ix_base_id_at(edited, other);
    bool is_renamed = !heft_str_eq(heft_edit_name(g, t), heft_ix_name(x, t));
    heft_identity requested = heft_edit_identity(g, t);
    if (requested.has & HEFT_HAS_BASE_ID)
        return !memcmp(requested.base_id.bytes, after ? after : none, sizeof none);
    return !before == !after && (!before || is_renamed || !memcmp(before, after, sizeof none));
}

static heft_status check_ids(const heft_edit_job *g, uint32_t t, const heft_index *edited,
                             uint32_t other)
{
    heft_identity a = heft_edit_identity(g, t), b = heft_ix_identity(edited, other);
    bool is_none = !(heft_le64(a.base_id.bytes) | heft_le64(a.base_id.bytes + 8));
    if (a.has & HEFT_HAS_BASE_ID && !is_none && !heft_ix_base_id_at(edited, other))
        return heft_error_plain(g->err, HEFT_E_UNSUPPORTED, "tensor %q: %s cannot store base ids",
                                heft_ix_name(&g->in->x, t), g->in->format->name);
    uint32_t changed = a.has ^ b.has;
    /* a format that cannot say "not trained" omits the flag; accept the omission if the edit
     * sets identities */
    if (g->identities)
        changed &= ~(uint32_t)HEFT_HAS_REQUIRES_GRAD;
    bool is_same = !(changed & (HEFT_HAS_PARAM_ID | HEFT_HAS_REQUIRES_GRAD)) &&
                   a.param_id == b.param_id && a.requires_grad == b.requires_grad &&
                   same_base_id(g, t, edited, other);
    return is_same ? HEFT_OK : tensor_differs(g, t, "its ids");
}

static heft_status check_parts(heft_edit_job *g, uint32_t t, const heft_index *edited,
                               uint32_t other)
{
    const heft_index *x = &g->in->x;
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    if (row->part_count != heft_ix_row(edited, other)->part_count)
        return tensor_differs(g, t, "its parts");
    for (uint32_t i = row->first_part; i < row->first_part + row->part_count; i++) {
        heft_str role = heft_ix_role(x, heft_ix_part_row_at(x, i)->role);
        uint32_t same = heft_ix_part_find(edited, other, role);
        if (same == HEFT_NONE || !same_part(g, i, edited, same))
            return tensor_differs(g, t, "its parts, or their attributes");
    }
    return HEFT_OK;
}

static heft_status check_tensor(heft_edit_job *g, uint32_t t, const heft_index *edited)
{
    const heft_index *x = &g->in->x;
    uint32_t other = heft_ix_find(edited, heft_edit_name(g, t));
    if (other == HEFT_NONE)
        return tensor_differs(g, t, "its name");
    HEFT_TRY(check_ids(g, t, edited, other));
    const heft_ix_tensor_row *before = heft_ix_row(x, t), *after = heft_ix_row(edited, other);
    if (before->rank != after->rank || before->dtype != after->dtype ||
        !heft_str_eq(heft_ix_layout(x, t), heft_ix_layout(edited, other)) ||
        (before->rank && memcmp(heft_ix_dims(x, t), heft_ix_dims(edited, other),
                                before->rank * sizeof(uint64_t)) != 0))
        return tensor_differs(g, t, "its shape, type or layout");
    if ((before->flags ^ after->flags) & HEFT_T_NAME_HASH)
        return tensor_differs(g, t, "its ids");
    heft_status st = check_parts(g, t, edited, other);
    values a = attributes_of(x, t), b = attributes_of(edited, other);
    bool same = !a.count && !b.count;
    if (!st && !same)
        st = compare_values(g, &a, &b, false, &same);
    return st || same ? st : tensor_differs(g, t, "its attributes");
}

/* ---- model-level parts ---- */

static heft_status same_bytes(heft_edit_job *g, uint32_t part, const heft_file *edited,
                              uint32_t other, bool *same)
{
    uint8_t a[1024], b[sizeof a];
    uint64_t length = heft_ix_part_row_at(&g->in->x, part)->length;
    heft_status st = HEFT_OK;
    *same = length == heft_ix_part_row_at(&edited->x, other)->length;
    for (uint64_t at = 0; *same && at < length && !st; at += sizeof a) {
        size_t n = length - at < sizeof a ? (size_t)(length - at) : sizeof a;
        st = heft_part_read(a, g->in, part, at, n, g->err);
        if (!st)
            st = heft_part_read(b, edited, other, at, n, g->err);
        *same = !st && !memcmp(a, b, n);
    }
    return st;
}

/* Compare vocabularies.  Ids of special tokens are metadata in some formats, so that the edit
 * may have changed the ids. */
static bool same_tokens(const heft_vocab *a, const heft_vocab *b, bool with_special)
{
    uint32_t count = heft_vocab_count(a);
    bool same = count == heft_vocab_count(b);
    for (int s = 0; s < HEFT_SPECIALS && same && with_special; s++)
        same = heft_vocab_special(a, (heft_special)s) == heft_vocab_special(b, (heft_special)s);
    for (uint32_t i = 0; i < count && same; i++)
        same = heft_str_eq(heft_vocab_at(a, i), heft_vocab_at(b, i));
    return same;
}

/* Compare the vocabulary; some formats omit a vocabulary without tokens. */
static heft_status check_vocab(heft_edit_job *g, const heft_file *edited)
{
    heft_vocab *v;
    bool is_metadata = g->opt.set_count || g->opt.unset_count;
    heft_status st = heft_vocab_open(&v, edited, g->err);
    if (st == HEFT_E_NOTFOUND)
        return heft_vocab_count(g->vocab) ? model_differs(g, "the vocabulary") : HEFT_OK;
    if (st)
        return st;
    bool same = same_tokens(g->vocab, v, heft_edit_has_new_vocab(g) || !is_metadata);
    heft_vocab_close(v);
    return same ? HEFT_OK : model_differs(g, "the vocabulary");
}

/* Require the requested text, with at most a little syntax around the text. */
static heft_status check_config(heft_edit_job *g, const heft_file *edited)
{
    enum { MAX_EXTRA = 64 };
    heft_str requested = g->opt.config;
    uint32_t part = heft_ix_part_find(&edited->x, HEFT_NONE, heft_lit("config"));
    uint64_t length = part == HEFT_NONE ? 0 : heft_ix_part_row_at(&edited->x, part)->length;
    if (part == HEFT_NONE || length < requested.len || length - requested.len > MAX_EXTRA)
        return model_differs(g, "the configuration");
    char *text = heft_plan_alloc(&g->p.plan, (size_t)length);
    if (!text)
        return HEFT_E_NOMEM;
    HEFT_TRY(heft_part_read(text, edited, part, 0, (size_t)length, g->err));
    size_t at = 0, extra = (size_t)length - requested.len;
    while (at <= extra && memcmp(text + at, requested.ptr, requested.len) != 0)
        at++;
    return at <= extra ? HEFT_OK : model_differs(g, "the configuration");
}

static uint32_t count_kept_parts(const heft_edit_job *g, const heft_file *f)
{
    uint32_t first, count_kept = 0, count = heft_file_parts(f, &first);
    for (uint32_t i = first; i < first + count; i++)
        count_kept +=
            !heft_edit_replaces_part(g, heft_ix_role(&f->x, heft_ix_part_row_at(&f->x, i)->role));
    return count_kept;
}

static heft_status check_model_parts(heft_edit_job *g, const heft_file *edited)
{
    uint32_t first, count = heft_file_parts(g->in, &first);
    if (g->vocab)
        HEFT_TRY(check_vocab(g, edited));
    if (g->opt.config.ptr)
        HEFT_TRY(check_config(g, edited));
    if (count_kept_parts(g, g->in) != count_kept_parts(g, edited))
        return model_differs(g, "parts of the file");
    for (uint32_t i = first; i < first + count; i++) {
        heft_str role = heft_ix_role(&g->in->x, heft_ix_part_row_at(&g->in->x, i)->role);
        uint32_t other = heft_ix_part_find(&edited->x, HEFT_NONE, role);
        bool same = heft_edit_replaces_part(g, role);
        if (other != HEFT_NONE && !same)
            HEFT_TRY(same_bytes(g, i, edited, other, &same));
        if (!same)
            return model_differs(g, "parts of the file");
    }
    return HEFT_OK;
}

/* ---- the whole model ---- */

static heft_status check_version(const heft_edit_job *g, const heft_file *edited)
{
    heft_str a = g->in->x.version, b = edited->x.version;
    const char *map = g->in->format->number_map;
    if (heft_str_eq(a, b))
        return HEFT_OK;
    /* The version may have been derived from the map. */
    if (map && heft_edit_changes_map(g, heft_lit(map)))
        return HEFT_OK;
    if (heft_format_writes(g->in->format, a))
        return model_differs(g, "the version");
    return heft_error_plain(g->err, HEFT_E_UNSUPPORTED,
                            "%s %q can be read, but not written: it cannot be edited (convert it)",
                            g->in->format->name, a);
}

static heft_status check_model(heft_edit_job *g, const heft_file *edited)
{
    heft_status st = check_version(g, edited);
    /* checksums of the file and digests of appended parts */
    uint32_t checksums = g->original->x.checksums.len + g->in->x.digests.len;
    if (!st && heft_ix_tensors(&edited->x) != heft_ix_tensors(&g->in->x))
        return model_differs(g, "the number of tensors");
    if (!st && !heft_str_eq(g->in->x.generator, edited->x.generator))
        return model_differs(g, "the generator");
    if (!st && heft_ix_checksums(&edited->x) < checksums)
        return model_differs(g, "checksums");
    if (!st)
        st = check_metadata(g, edited);
    for (uint32_t t = 0; t < heft_ix_tensors(&g->in->x) && !st; t++)
        st = check_tensor(g, t, &edited->x);
    return st ? st : check_model_parts(g, edited);
}

heft_status heft_edit_check(heft_edit_job *g)
{
    heft_error why;
    heft_file *edited;
    heft_ledger w;
    edited_source source = { { &edited_ops, g->e->size }, g };
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    o.format = g->in->format;
    o.host = g->e->host;
    o.limits = &g->in->x.limits;
    heft_status st = heft_file_open_source(&edited, &source.base, &o, &why);
    if (!st) {
        st = heft_edit_check_checksums(&w, edited, &why);
        heft_ledger_free(&w);
        if (st)
            heft_file_close(edited);
    }
    if (st) {
        const char *format = st == HEFT_E_LIMIT ? "%s" : "the edited file would be invalid: %s";
        st = st == HEFT_E_FORMAT ? HEFT_E_UNSUPPORTED : st;
        return heft_error_plain(g->err, st, format, why.message);
    }
    st = check_model(g, edited);
    heft_file_close(edited);
    return st;
}
