/* edit_check.c - before a byte is changed, the edited file is opened as it will be, and compared with what
 * there is.  A writer that drops or bends something is found out here, whatever the format. */
#include "base/sort.h"
#include "core/check/source_verifier.h"
#include "core/edit/edit.h"
#include "model/values.h"

/* ---- checksums that cover no data ---- */

static heft_part_use nothing_passes(void *ctx, uint32_t part)
{
    (void)ctx;
    (void)part;
    return HEFT_PART_UNUSED;
}

heft_status heft_edit_check_checksums(heft_source_verifier *w, const heft_file *f, heft_error *err)
{
    heft_status st = heft_source_verifier_begin(w, f, false, nothing_passes, NULL, err);
    return st ? st : heft_source_verifier_require(w, true, err);
}

/* ---- the edited file as a source ---- */

typedef struct edited {
    heft_source base;
    const heft_editing *g;
} edited;

static heft_status read_edited(heft_source *s, uint64_t at, void *buf, size_t len, heft_error *err)
{
    return heft_edit_bytes(((const edited *)s)->g, at, buf, len, err);
}

static void close_edited(heft_source *s)
{
    (void)s;
}

static const heft_source_ops edited_ops = { .size = sizeof(heft_source_ops),
                                            .read = read_edited,
                                            .close = close_edited };

/* ---- comparing ---- */

static heft_status differs(const heft_editing *g, const char *what)
{
    return heft_error_plain(g->err, HEFT_E_UNSUPPORTED,
                            "an edit would change more than was asked for: %s", what);
}

static heft_status tensor_differs(const heft_editing *g, uint32_t t, const char *what)
{
    return heft_error_plain(g->err, HEFT_E_UNSUPPORTED,
                            "an edit would change more than was asked for: tensor %q: %s",
                            heft_ix_name(&g->in->x, t), what);
}

static bool same_value(const heft_value *a, const heft_value *b)
{
    return a->stored == b->stored && heft_value_same(a, b);
}

/* Values one after the other: metadata, or attributes of one tensor. */
typedef struct values {
    const uint8_t *first;
    size_t step; /* from one to the next */
    uint32_t base, count;
    uint32_t *top, tops; /* those of the top level, by key; counted from base */
} values;

static const heft_value *value(const values *v, uint32_t i)
{
    return (const heft_value *)(const void *)(v->first + i * v->step);
}

static uint32_t next_value(const values *v, uint32_t i)
{
    const heft_value *own = value(v, i);
    return heft_value_nests(own) ? own->as.of.end - v->base : i + 1;
}

static bool key_before(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_str_order(value(ctx, a)->key, value(ctx, b)->key) < 0;
}

static bool sort_values(heft_editing *g, values *v)
{
    v->top = heft_mem_alloc(&g->e->mem, 2 * (size_t)(v->count + 1) * sizeof *v->top);
    if (!v->top)
        return false;
    for (uint32_t i = 0; i < v->count; i = next_value(v, i))
        v->top[v->tops++] = i;
    heft_sort(v->top, v->top + v->count, v->tops, key_before, v);
    return true;
}

static void free_values(heft_editing *g, values *v)
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

static bool is_set(const heft_editing *g, heft_str key)
{
    return heft_edit_sets(g, key) || heft_edit_changes_map(g, key);
}

/* b is what a becomes; edited: values that are set or taken away do not count, nor does a map of numbers that changes. */
static bool same_values(const heft_editing *g, const values *a, const values *b, bool is_edited)
{
    uint32_t i = 0, j = 0;
    for (;;) {
        while (
            is_edited && i < a->tops &&
            (is_set(g, value(a, a->top[i])->key) || heft_edit_unsets(g, value(a, a->top[i])->key)))
            i++;
        while (is_edited && j < b->tops && is_set(g, value(b, b->top[j])->key))
            j++;
        if (i == a->tops || j == b->tops)
            return i == a->tops && j == b->tops;
        if (!same_tree(a, a->top[i++], b, b->top[j++]))
            return false;
    }
}

static heft_status compare_values(heft_editing *g, values *a, values *b, bool is_edited, bool *same)
{
    bool room = sort_values(g, a) && sort_values(g, b);
    *same = room && same_values(g, a, b, is_edited);
    free_values(g, a);
    free_values(g, b);
    return room ? HEFT_OK : heft_error_no_memory(g->err, "to check the edit");
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

/* A number that is a text now is as good, and so is a truth value that is a number. */
static bool is_carried(const heft_value *asked, const heft_value *now)
{
    char room[2][HEFT_F64_TEXT];
    heft_value v = *asked;
    heft_str a, b;
    if (v.kind == HEFT_KIND_BOOL && (now->kind == HEFT_KIND_INT || now->kind == HEFT_KIND_UINT))
        return now->as.u == v.as.b;
    v.stored = now->stored;
    return same_value(&v, now) || (heft_value_text(&a, asked, room[0]) &&
                                   heft_value_text(&b, now, room[1]) && heft_str_eq(a, b));
}

static values numbers_of(const heft_editing *g, const heft_index *x)
{
    heft_str map = heft_lit(g->in->format->number_map);
    const heft_value *v = heft_edit_find(x, g->in->format, map);
    if (!v || v->kind != HEFT_KIND_MAP)
        return (values){ .count = 0 };
    uint32_t base = (uint32_t)(v - heft_ix_value(x, 0)) + 1;
    return (values){ .first = (const uint8_t *)(v + 1),
                     .step = sizeof *v,
                     .base = base,
                     .count = v->as.of.end - base };
}

static heft_status check_metadata(heft_editing *g, const heft_file *now)
{
    for (size_t i = 0; i < g->opt.set_count; i++) {
        heft_str key = g->opt.set[i].key;
        const heft_value *asked = heft_edit_find(&g->p.x, g->in->format, key);
        const heft_value *is = heft_edit_find(&now->x, g->in->format, key);
        if (!asked || !is || !is_carried(asked, is))
            return heft_error_plain(g->err, HEFT_E_UNSUPPORTED,
                                    "metadata %q cannot be set: it would not be read back as such",
                                    key);
    }
    const char *map = g->in->format->number_map;
    bool same = true;
    heft_status st = HEFT_OK;
    if (map && heft_edit_changes_map(g, heft_lit(map))) {
        values a = numbers_of(g, &g->p.x), b = numbers_of(g, &now->x);
        st = compare_values(g, &a, &b, false, &same);
        if (!st && !same)
            return differs(g, map);
    }
    const heft_vec *had = &g->in->x.values, *has = &now->x.values;
    values a = { .first = had->ptr, .step = sizeof(heft_value), .count = had->len };
    values b = { .first = has->ptr, .step = sizeof(heft_value), .count = has->len };
    if (!st)
        st = compare_values(g, &a, &b, true, &same);
    return st || same ? st : differs(g, "metadata");
}

/* ---- tensors ---- */

static bool same_part(const heft_editing *g, uint32_t part, const heft_index *now, uint32_t other)
{
    const heft_index *x = &g->in->x;
    const heft_ix_part_row *a = heft_ix_part_row_at(x, part), *b = heft_ix_part_row_at(now, other);
    bool is_there = !a->stored || b->offset == heft_ix_part_row_at(&g->p.x, part)->offset;
    return is_there && a->stored == b->stored && a->length == b->length && a->dtype == b->dtype &&
           a->encoding == b->encoding && a->flags == b->flags &&
           heft_str_eq(heft_ix_digest_of(x, part), heft_ix_digest_of(now, other));
}

static bool same_base_id(const heft_editing *g, uint32_t t, const heft_index *now, uint32_t other)
{
    static const uint8_t none[16] = { 0 };
    const heft_index *x = &g->in->x;
    const uint8_t *had = heft_ix_base_id_at(x, t), *has = heft_ix_base_id_at(now, other);
    bool is_renamed = !heft_str_eq(heft_edit_name(g, t), heft_ix_name(x, t));
    heft_identity asked = heft_edit_identity(g, t);
    if (asked.has & HEFT_HAS_BASE_ID)
        return !memcmp(asked.base_id.bytes, has ? has : none, sizeof none);
    return !had == !has && (!had || is_renamed || !memcmp(had, has, sizeof none));
}

static heft_status check_ids(const heft_editing *g, uint32_t t, const heft_index *now,
                             uint32_t other)
{
    heft_identity a = heft_edit_identity(g, t), b = heft_ix_identity(now, other);
    bool is_none = !(heft_le64(a.base_id.bytes) | heft_le64(a.base_id.bytes + 8));
    if (a.has & HEFT_HAS_BASE_ID && !is_none && !heft_ix_base_id_at(now, other))
        return heft_error_plain(g->err, HEFT_E_UNSUPPORTED, "tensor %q: %s files have no base ids",
                                heft_ix_name(&g->in->x, t), g->in->format->name);
    uint32_t changed = a.has ^ b.has;
    /* a format without a word for "not trained" says nothing instead: as good, when that was asked for */
    if (g->identities)
        changed &= ~(uint32_t)HEFT_HAS_REQUIRES_GRAD;
    bool is_same = !(changed & (HEFT_HAS_PARAM_ID | HEFT_HAS_REQUIRES_GRAD)) &&
                   a.param_id == b.param_id && a.requires_grad == b.requires_grad &&
                   same_base_id(g, t, now, other);
    return is_same ? HEFT_OK : tensor_differs(g, t, "its ids");
}

static heft_status check_parts(heft_editing *g, uint32_t t, const heft_index *now, uint32_t other)
{
    const heft_index *x = &g->in->x;
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    if (row->part_count != heft_ix_row(now, other)->part_count)
        return tensor_differs(g, t, "its parts");
    for (uint32_t i = row->first_part; i < row->first_part + row->part_count; i++) {
        heft_str role = heft_ix_role(x, heft_ix_part_row_at(x, i)->role);
        uint32_t same = heft_ix_part_find(now, other, role);
        if (same == HEFT_NONE || !same_part(g, i, now, same))
            return tensor_differs(g, t, "its parts, or what is said of them");
    }
    return HEFT_OK;
}

static heft_status check_tensor(heft_editing *g, uint32_t t, const heft_index *now)
{
    const heft_index *x = &g->in->x;
    uint32_t other = heft_ix_find(now, heft_edit_name(g, t));
    if (other == HEFT_NONE)
        return tensor_differs(g, t, "its name");
    heft_status st = check_ids(g, t, now, other);
    if (st)
        return st;
    const heft_ix_tensor_row *had = heft_ix_row(x, t), *has = heft_ix_row(now, other);
    if (had->rank != has->rank || had->dtype != has->dtype ||
        !heft_str_eq(heft_ix_layout(x, t), heft_ix_layout(now, other)) ||
        (had->rank &&
         memcmp(heft_ix_dims(x, t), heft_ix_dims(now, other), had->rank * sizeof(uint64_t)) != 0))
        return tensor_differs(g, t, "its shape, type or layout");
    if ((had->flags ^ has->flags) & HEFT_T_NAME_HASH)
        return tensor_differs(g, t, "its ids");
    st = check_parts(g, t, now, other);
    values a = attributes_of(x, t), b = attributes_of(now, other);
    bool same = !a.count && !b.count;
    if (!st && !same)
        st = compare_values(g, &a, &b, false, &same);
    return st || same ? st : tensor_differs(g, t, "its attributes");
}

/* ---- parts of the file itself ---- */

static heft_status same_bytes(heft_editing *g, uint32_t part, const heft_file *now, uint32_t other,
                              bool *same)
{
    uint8_t a[1024], b[sizeof a];
    uint64_t length = heft_ix_part_row_at(&g->in->x, part)->length;
    heft_status st = HEFT_OK;
    *same = length == heft_ix_part_row_at(&now->x, other)->length;
    for (uint64_t at = 0; *same && at < length && !st; at += sizeof a) {
        size_t n = length - at < sizeof a ? (size_t)(length - at) : sizeof a;
        st = heft_part_read(a, g->in, part, at, n, g->err);
        if (!st)
            st = heft_part_read(b, now, other, at, n, g->err);
        *same = !st && !memcmp(a, b, n);
    }
    return st;
}

/* Ids of special tokens are metadata in some formats, and may be what is edited. */
static bool same_tokens(const heft_vocab *a, const heft_vocab *b, bool and_special)
{
    uint32_t count = heft_vocab_count(a);
    bool same = count == heft_vocab_count(b);
    for (int s = 0; s < HEFT_SPECIALS && same && and_special; s++)
        same = heft_vocab_special(a, (heft_special)s) == heft_vocab_special(b, (heft_special)s);
    for (uint32_t i = 0; i < count && same; i++)
        same = heft_str_eq(heft_vocab_token(a, i), heft_vocab_token(b, i));
    return same;
}

/* A vocabulary without tokens is none in some formats. */
static heft_status check_vocab(heft_editing *g, const heft_file *now)
{
    heft_vocab *v;
    bool is_metadata = g->opt.set_count || g->opt.unset_count;
    heft_status st = heft_vocab_open(&v, now, g->err);
    if (st == HEFT_E_NOTFOUND)
        return heft_vocab_count(g->vocab) ? differs(g, "the vocabulary") : HEFT_OK;
    if (st)
        return st;
    bool same = same_tokens(g->vocab, v, heft_edit_has_new_vocab(g) || !is_metadata);
    heft_vocab_close(v);
    return same ? HEFT_OK : differs(g, "the vocabulary");
}

/* The text that was asked for, or that text with a little around it. */
static heft_status check_config(heft_editing *g, const heft_file *now)
{
    enum { MOST_AROUND = 64 };
    heft_str asked = g->opt.config;
    uint32_t part = heft_ix_part_find(&now->x, HEFT_NONE, heft_lit("config"));
    uint64_t length = part == HEFT_NONE ? 0 : heft_ix_part_row_at(&now->x, part)->length;
    if (part == HEFT_NONE || length < asked.len || length - asked.len > MOST_AROUND)
        return differs(g, "the configuration");
    char *text = heft_plan_alloc(&g->p.plan, (size_t)length);
    if (!text)
        return HEFT_E_NOMEM;
    heft_status st = heft_part_read(text, now, part, 0, (size_t)length, g->err);
    if (st)
        return st;
    size_t at = 0, around = (size_t)length - asked.len;
    while (at <= around && memcmp(text + at, asked.ptr, asked.len) != 0)
        at++;
    return at <= around ? HEFT_OK : differs(g, "the configuration");
}

static uint32_t count_kept_parts(const heft_editing *g, const heft_file *f)
{
    uint32_t first, kept = 0, count = heft_file_parts(f, &first);
    for (uint32_t i = first; i < first + count; i++)
        kept += !heft_edit_replaces_part(g,
                                         heft_ix_role(&f->x, heft_ix_part_row_at(&f->x, i)->role));
    return kept;
}

static heft_status check_model_parts(heft_editing *g, const heft_file *now)
{
    uint32_t first, count = heft_file_parts(g->in, &first);
    heft_status st = g->vocab ? check_vocab(g, now) : HEFT_OK;
    if (!st && g->opt.config.ptr)
        st = check_config(g, now);
    if (!st && count_kept_parts(g, g->in) != count_kept_parts(g, now))
        return differs(g, "parts of the file");
    for (uint32_t i = first; i < first + count && !st; i++) {
        heft_str role = heft_ix_role(&g->in->x, heft_ix_part_row_at(&g->in->x, i)->role);
        uint32_t other = heft_ix_part_find(&now->x, HEFT_NONE, role);
        bool same = heft_edit_replaces_part(g, role);
        if (other != HEFT_NONE && !same)
            st = same_bytes(g, i, now, other, &same);
        if (!st && !same)
            return differs(g, "parts of the file");
    }
    return st;
}

/* ---- all of it ---- */

static heft_status check_version(const heft_editing *g, const heft_file *now)
{
    heft_str a = g->in->x.version, b = now->x.version;
    const char *map = g->in->format->number_map;
    if (heft_str_eq(a, b))
        return HEFT_OK;
    if (map && heft_edit_changes_map(g, heft_lit(map))) /* which may be what told the version */
        return HEFT_OK;
    if (heft_format_writes(g->in->format, a))
        return differs(g, "the version");
    return heft_error_plain(g->err, HEFT_E_UNSUPPORTED,
                            "%s %q is read, but not written: it cannot be edited (convert it)",
                            g->in->format->name, a);
}

static heft_status check_model(heft_editing *g, const heft_file *now)
{
    heft_status st = check_version(g, now);
    /* the checksums of the file, and the digests of what is added */
    uint32_t claims = g->plain->x.checksums.len + g->in->x.digests.len;
    if (!st && heft_ix_tensors(&now->x) != heft_ix_tensors(&g->in->x))
        return differs(g, "the number of tensors");
    if (!st && !heft_str_eq(g->in->x.generator, now->x.generator))
        return differs(g, "the generator");
    if (!st && heft_ix_checksums(&now->x) < claims)
        return differs(g, "checksums");
    if (!st)
        st = check_metadata(g, now);
    for (uint32_t t = 0; t < heft_ix_tensors(&g->in->x) && !st; t++)
        st = check_tensor(g, t, &now->x);
    return st ? st : check_model_parts(g, now);
}

heft_status heft_edit_check(heft_editing *g)
{
    heft_error why;
    heft_file *now;
    heft_source_verifier w;
    edited source = { { &edited_ops, g->e->size }, g };
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    o.format = g->in->format;
    o.host = g->e->host;
    o.limits = &g->in->x.limits;
    heft_status st = heft_file_open_source(&now, &source.base, &o, &why);
    if (!st) {
        st = heft_edit_check_checksums(&w, now, &why);
        heft_source_verifier_free(&w);
        if (st)
            heft_file_close(now);
    }
    if (st)
        return heft_error_plain(g->err, st == HEFT_E_FORMAT ? HEFT_E_UNSUPPORTED : st,
                                "the edited file would be wrong: %s", why.message);
    st = check_model(g, now);
    heft_file_close(now);
    return st;
}
