/* values.c - metadata values: making, appending, conversion to text, duplicate keys, comparison. */
#include "model/values.h"

#include "base/error.h"
#include "base/text.h"
#include "model/names.h"

/* ---- making ---- */

heft_value heft_value_bool(heft_str key, bool value)
{
    return (heft_value){ .kind = HEFT_KIND_BOOL, .key = key, .as.b = value };
}

heft_value heft_value_int(heft_str key, int64_t value)
{
    return (heft_value){ .kind = HEFT_KIND_INT, .key = key, .as.i = value };
}

heft_value heft_value_float(heft_str key, double value)
{
    return (heft_value){ .kind = HEFT_KIND_FLOAT, .key = key, .as.f = value };
}

heft_value heft_value_str(heft_str key, heft_str value)
{
    return (heft_value){ .kind = HEFT_KIND_STR, .key = key, .as.s = value };
}

/* ---- appending ---- */

/* Name the outermost container: elements of lists have no keys. */
static heft_status too_deep(heft_index *x, const heft_value *outermost)
{
    return heft_error_rule(x->err,
                           heft_error_plain(x->err, HEFT_E_LIMIT,
                                            "metadata %q is nested deeper than %U", outermost->key,
                                            (uint64_t)x->limits.depth),
                           "heft/limit-depth");
}

/* Open the container `v`, which is the last of `count` values. */
static heft_status open_container(heft_index *x, heft_value *v, uint32_t count)
{
    v->as.container.count = 0;
    v->as.container.end = count;
    uint32_t *open = heft_vec_push(&x->mem, &x->open, sizeof *open);
    if (!open)
        return heft_ix_no_memory(x);
    *open = count - 1;
    return HEFT_OK;
}

heft_status heft_ix_meta(heft_index *x, heft_value v)
{
    const uint32_t *open = x->open.ptr;
    if (heft_value_nests(&v) && x->open.len >= x->limits.depth)
        return too_deep(x, heft_ix_value(x, *open));
    if (x->open.len)
        heft_ix_value(x, open[x->open.len - 1])->as.container.count++;
    heft_value *to = heft_vec_push(&x->mem, &x->values, sizeof *to);
    if (!to)
        return heft_ix_no_memory(x);
    *to = v;
    return heft_value_nests(&v) ? open_container(x, to, x->values.len) : HEFT_OK;
}

void heft_ix_meta_end(heft_index *x)
{
    uint32_t i = ((uint32_t *)x->open.ptr)[--x->open.len];
    heft_ix_value(x, i)->as.container.end = x->values.len;
}

static heft_value *attr_value(const heft_index *x, uint32_t i)
{
    return &((heft_ix_attr_row *)x->attrs.ptr + i)->value;
}

heft_status heft_ix_attr(heft_index *x, uint32_t tensor, heft_value v)
{
    const uint32_t *open = x->open.ptr;
    if (heft_value_nests(&v) && x->open.len >= x->limits.depth)
        return too_deep(x, attr_value(x, *open));
    if (x->open.len)
        attr_value(x, open[x->open.len - 1])->as.container.count++;
    heft_ix_attr_row *to = heft_vec_push(&x->mem, &x->attrs, sizeof *to);
    if (!to)
        return heft_ix_no_memory(x);
    *to = (heft_ix_attr_row){ v, tensor };
    if (!heft_ix_row(x, tensor)->attrs)
        heft_ix_row(x, tensor)->attrs = x->attrs.len;
    return heft_value_nests(&v) ? open_container(x, &to->value, x->attrs.len) : HEFT_OK;
}

void heft_ix_attr_end(heft_index *x)
{
    uint32_t i = ((uint32_t *)x->open.ptr)[--x->open.len];
    attr_value(x, i)->as.container.end = x->attrs.len;
}

/* ---- conversion to text ---- */

bool heft_value_text(heft_str *out, const heft_value *v, char buffer[HEFT_F64_TEXT])
{
    bool negative = v->kind == HEFT_KIND_INT && v->as.i < 0;
    uint64_t magnitude = negative ? 0 - (uint64_t)v->as.i : v->as.u;
    switch (v->kind) {
    case HEFT_KIND_STR:
        *out = v->as.s;
        return heft_str_is_utf8(v->as.s);
    case HEFT_KIND_BOOL:
        *out = heft_lit(v->as.b ? "true" : "false");
        return true;
    case HEFT_KIND_INT:
    case HEFT_KIND_UINT:
        buffer[0] = '-';
        *out = (heft_str){ buffer, negative + heft_u64_text(buffer + negative, magnitude) };
        return true;
    case HEFT_KIND_FLOAT:
        *out = (heft_str){ buffer, heft_f64_text(buffer, v->as.f) };
        return true;
    default:
        return false;
    }
}

/* ---- duplicate keys ---- */

typedef struct children { /* children of a container, or the top-level values */
    uint32_t first, end;  /* range of values that holds the children and their descendants */
    uint32_t *ids;        /* value number of each child; HEFT_NONE: remove the child */
    uint32_t count;
} children;

static heft_str key_of(const void *ctx, uint32_t i)
{
    return heft_ix_value(ctx, i)->key;
}

/* Mark children whose key occurs again later; return their number. */
static uint32_t mark_duplicates(heft_index *x, heft_names *seen, children *c)
{
    heft_names_of of = { key_of, x };
    uint32_t dropped = 0;
    for (uint32_t k = c->count; k--;) {
        heft_str key = key_of(x, c->ids[k]);
        uint32_t hash = heft_names_hash(&x->key, key);
        if (heft_names_add(seen, of, hash, key, c->ids[k]) != HEFT_NONE) {
            c->ids[k] = HEFT_NONE;
            dropped++;
        }
    }
    return dropped;
}

/* Remove the marked children and their descendants.  new_ids[i] becomes the new number of value i,
 * or of the next value that stays if i is removed. */
static void remove_marked(heft_index *x, const children *c, uint32_t *new_ids)
{
    heft_value *v = x->values.ptr;
    uint32_t to = c->first, i = c->first;
    for (uint32_t k = 0; k < c->first; k++)
        new_ids[k] = k;
    for (uint32_t k = 0; k < c->count; k++)
        for (uint32_t next = heft_ix_value_next(x, i); i < next; i++) {
            new_ids[i] = to;
            if (c->ids[k] != HEFT_NONE)
                v[to++] = v[i];
        }
    for (; i < x->values.len; i++) {
        new_ids[i] = to;
        v[to++] = v[i];
    }
    new_ids[i] = to;
    x->values.len = to;
    for (i = 0; i < to; i++)
        if (heft_value_nests(&v[i]))
            v[i].as.container.end = new_ids[v[i].as.container.end];
}

heft_status heft_ix_meta_keep_last(heft_index *x, uint32_t parent, uint32_t *dropped)
{
    heft_names seen = { NULL, 0, 0 };
    bool top_level = parent == HEFT_NONE;
    children c = { top_level ? 0 : parent + 1,
                   top_level ? x->values.len : heft_ix_value_next(x, parent), NULL, 0 };
    size_t bytes = 2 * ((size_t)x->values.len + 1) * sizeof *c.ids;
    *dropped = 0;
    if (c.end - c.first < 2)
        return HEFT_OK;
    c.ids = heft_mem_alloc(&x->mem, bytes);
    for (uint32_t i = c.first; c.ids && i < c.end; i = heft_ix_value_next(x, i))
        c.ids[c.count++] = i;
    bool reserved = c.ids && heft_names_reserve(&x->mem, &seen, c.count);
    if (reserved)
        *dropped = mark_duplicates(x, &seen, &c);
    if (*dropped)
        remove_marked(x, &c, c.ids + x->values.len + 1);
    if (*dropped && !top_level)
        heft_ix_value(x, parent)->as.container.count -= *dropped;
    heft_names_free(&x->mem, &seen);
    heft_mem_free(&x->mem, c.ids, bytes);
    return reserved ? HEFT_OK : heft_error_no_memory(x->err, "to compare metadata keys");
}

/* ---- comparison ---- */

static bool same_array(const heft_value *a, const heft_value *b)
{
    uint64_t bytes;
    return a->as.array.count == b->as.array.count && a->as.array.dtype == b->as.array.dtype &&
           heft_dtype_bytes(&bytes, a->as.array.dtype, a->as.array.count) &&
           (!bytes || !memcmp(a->as.array.ptr, b->as.array.ptr, (size_t)bytes));
}

heft_value heft_value_number(heft_dtype t, const void *bytes)
{
    heft_value v = { .kind = HEFT_KIND_UINT };
    uint8_t own[sizeof(uint64_t)] = { 0 };
    uint32_t size = heft_dtype_size(t);
    memcpy(own, bytes, size < sizeof own ? size : sizeof own);
    uint64_t bits = heft_le64(own);
    v.as.u = bits;
    if (t == HEFT_BOOL) {
        v.kind = HEFT_KIND_BOOL;
        v.as.b = bits;
    } else if (heft_dtype_is_float(t)) {
        v.kind = HEFT_KIND_FLOAT;
        (void)heft_dtype_to_f64(&v.as.f, t, bytes, 0, 1); /* every real float fits */
    } else if (heft_dtype_is_signed_int(t)) {
        uint64_t sign = UINT64_C(1) << (8 * size - 1);
        v.kind = HEFT_KIND_INT;
        v.as.i = (int64_t)((bits ^ sign) - sign);
    }
    return v;
}

bool heft_value_same(const heft_value *a, const heft_value *b)
{
    if (a->kind != b->kind || !heft_str_eq(a->key, b->key))
        return false;
    switch (a->kind) {
    case HEFT_KIND_NULL:
        return true;
    case HEFT_KIND_BOOL:
        return a->as.b == b->as.b;
    case HEFT_KIND_INT:
    case HEFT_KIND_UINT:
        return a->as.u == b->as.u;
    case HEFT_KIND_FLOAT:
        return !memcmp(&a->as.f, &b->as.f, sizeof a->as.f);
    case HEFT_KIND_STR:
    case HEFT_KIND_BYTES:
    case HEFT_KIND_ID128:
        return heft_str_eq(a->as.s, b->as.s);
    case HEFT_KIND_ARRAY:
        return same_array(a, b);
    case HEFT_KIND_LIST:
    case HEFT_KIND_MAP:
        return a->as.container.count == b->as.container.count;
    }
    return false;
}

/* ---- keys that must occur once ---- */

static heft_str value_key(const void *ctx, uint32_t i)
{
    return heft_ix_value(ctx, i)->key;
}

static heft_str attr_key(const void *ctx, uint32_t i)
{
    return ((const heft_ix_attr_row *)((const heft_index *)ctx)->attrs.ptr)[i].value.key;
}

static uint32_t attr_next(const heft_index *x, uint32_t i)
{
    const heft_value *v = &((const heft_ix_attr_row *)x->attrs.ptr)[i].value;
    return heft_value_next(v, i);
}

/* Check the keys of values [i, end); next() skips the children of containers. */
static heft_status unique(heft_index *x, heft_names_of of, uint32_t i, uint32_t end,
                          uint32_t (*next)(const heft_index *x, uint32_t i), const char *what)
{
    heft_names seen = { NULL, 0, 0 };
    heft_status st = HEFT_OK;
    uint32_t count = 0;
    for (uint32_t k = i; k < end; k = next(x, k))
        count++;
    if (count < 2)
        return HEFT_OK;
    if (!heft_names_reserve(&x->mem, &seen, count))
        return heft_error_no_memory(x->err, "to compare metadata keys");
    for (; i < end && !st; i = next(x, i)) {
        heft_str key = of.name(of.ctx, i);
        if (heft_names_add(&seen, of, heft_names_hash(&x->key, key), key, i) != HEFT_NONE)
            st = heft_error_set(x->err, HEFT_E_FORMAT, heft_ix_offset_of(x, key),
                                "key %q occurs twice in %s", key, what);
    }
    heft_names_free(&x->mem, &seen);
    return st;
}

heft_status heft_meta_unique(heft_index *x, const char *what)
{
    heft_names_of of = { value_key, x };
    uint32_t dropped;
    heft_status st = unique(x, of, 0, x->values.len, heft_ix_value_next, what);
    if (!st || heft_ix_forgive(x, st, "duplicate-key"))
        return st;
    return heft_ix_meta_keep_last(x, HEFT_NONE, &dropped);
}

heft_status heft_attrs_unique(heft_index *x, uint32_t tensor, const char *what)
{
    heft_names_of of = { attr_key, x };
    uint32_t first = heft_ix_row(x, tensor)->attrs;
    return first ? unique(x, of, first - 1, x->attrs.len, attr_next, what) : HEFT_OK;
}
