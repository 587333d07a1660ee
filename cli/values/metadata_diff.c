#include "values/diff_table.h"

#include <stdlib.h>
#include <string.h>

#include "text/number_text.h"

/* ---- one value ---- */

static bool has_same_bytes(const void *p, size_t n, const void *q, size_t m)
{
    return n == m && (!n || !memcmp(p, q, n));
}

static bool is_same_array(const heft_value *x, const heft_value *y)
{
    const heft_dtype_info *d = heft_dtype_get(x->as.array.dtype);
    return x->as.array.dtype == y->as.array.dtype && x->as.array.count == y->as.array.count && d &&
           has_same_bytes(x->as.array.ptr, (size_t)x->as.array.count * d->block_bytes,
                          y->as.array.ptr, (size_t)y->as.array.count * d->block_bytes);
}

/* Compare two values without their children. */
static bool is_same_scalar(const heft_value *x, const heft_value *y)
{
    switch (x->kind) {
    case HEFT_KIND_BOOL:
        return x->as.b == y->as.b;
    case HEFT_KIND_INT:
    case HEFT_KIND_UINT:
        return x->as.u == y->as.u;
    case HEFT_KIND_FLOAT:
        return x->as.f == y->as.f || (x->as.f != x->as.f && y->as.f != y->as.f);
    case HEFT_KIND_LIST:
    case HEFT_KIND_MAP:
        return x->as.container.count == y->as.container.count;
    case HEFT_KIND_ARRAY:
        return is_same_array(x, y);
    case HEFT_KIND_NULL:
        return true;
    default:
        return str_same(x->as.s, y->as.s);
    }
}

/* Return true if a text spells the other value, as in a format that stores texts only. */
static bool is_spelled(const heft_value *text, const heft_value *v)
{
    char copy[64], *end;
    size_t len = text->as.s.len;
    if (text->kind != HEFT_KIND_STR || !len || len >= sizeof copy)
        return false;
    memcpy(copy, text->as.s.ptr, len);
    copy[len] = 0;
    if (v->kind == HEFT_KIND_BOOL)
        return !strcmp(copy, v->as.b ? "true" : "false");
    if (v->kind == HEFT_KIND_UINT)
        return strtoull(copy, &end, 10) == v->as.u && !*end;
    if (v->kind == HEFT_KIND_INT)
        return strtoll(copy, &end, 10) == v->as.i && !*end;
    return v->kind == HEFT_KIND_FLOAT && strtod(copy, &end) == v->as.f && !*end;
}

/* A number may be signed in one file and unsigned in the other. */
static bool is_same_integer(const heft_value *x, const heft_value *y)
{
    bool are_integers = (x->kind == HEFT_KIND_INT || x->kind == HEFT_KIND_UINT) &&
                        (y->kind == HEFT_KIND_INT || y->kind == HEFT_KIND_UINT);
    return are_integers && x->as.u == y->as.u && x->as.i >= 0;
}

static bool is_same_value(const metadata_diff *d, uint32_t i, uint32_t k)
{
    uint32_t count = heft_meta_next(d->a, i) - i;
    heft_value x = heft_meta_at(d->a, i), y = heft_meta_at(d->b, k);
    if (x.kind != y.kind)
        return is_same_integer(&x, &y) || is_spelled(&x, &y) || is_spelled(&y, &x);
    bool same = heft_meta_next(d->b, k) - k == count;
    for (uint32_t n = 0; n < count && same; n++) {
        x = heft_meta_at(d->a, i + n);
        y = heft_meta_at(d->b, k + n);
        same = x.kind == y.kind && is_same_scalar(&x, &y) && (!n || str_same(x.key, y.key));
    }
    return same;
}

/* ---- all keys ---- */

typedef struct key_row {
    heft_str key;
    uint32_t value;
} key_row;

static bool describes_file(const heft_file *f, heft_str key)
{
    const char *format = heft_format_name(heft_file_format(f));
    if (!strcmp(format, "safetensors"))
        return str_same(key, str_of("format"));
    return !strcmp(format, "gguf") &&
           (str_same(key, str_of("general.alignment")) || str_begins(key, "split."));
}

static int by_key(const void *a, const void *b)
{
    const key_row *x = a, *y = b;
    int order = str_order(x->key, y->key);
    return order ? order : (x->value > y->value) - (x->value < y->value);
}

/* Return the malloc'ed top-level keys in order; NULL without memory. */
static key_row *list_keys(uint32_t *count, const heft_file *f, const heft_file *other)
{
    key_row *keys = malloc(((size_t)heft_meta_count(f) + 1) * sizeof *keys);
    *count = 0;
    for (uint32_t i = 0; keys && i < heft_meta_count(f); i = heft_meta_next(f, i)) {
        heft_str key = heft_meta_at(f, i).key;
        if (!describes_file(f, key) && !describes_file(other, key))
            keys[(*count)++] = (key_row){ key, i };
    }
    if (keys)
        qsort(keys, *count, sizeof *keys, by_key);
    return keys;
}

static void compare_keys(metadata_diff *d, const key_row *a, uint32_t count_a, const key_row *b,
                         uint32_t count_b)
{
    bool has_same_format = heft_file_format(d->a) == heft_file_format(d->b) &&
                           str_same(heft_file_version(d->a), heft_file_version(d->b));
    d->equal = true;
    for (uint32_t i = 0, k = 0; i < count_a || k < count_b;) {
        int order = i == count_a ? 1 : k == count_b ? -1 : str_order(a[i].key, b[k].key);
        if (order || !is_same_value(d, a[i].value, b[k].value)) {
            d->changes[d->count++] = (metadata_change){ order <= 0 ? a[i].value : HEFT_NONE,
                                                        order >= 0 ? b[k].value : HEFT_NONE };
            d->equal = d->equal && order && !has_same_format;
        }
        i += order <= 0;
        k += order >= 0;
    }
}

int metadata_diff_find(metadata_diff *d, const heft_file *a, const heft_file *b, const char *path)
{
    uint32_t count_a, count_b;
    *d = (metadata_diff){ .a = a, .b = b };
    key_row *of_a = list_keys(&count_a, a, b), *of_b = list_keys(&count_b, b, a);
    d->changes = of_a && of_b ? malloc(((size_t)count_a + count_b + 1) * sizeof *d->changes) : NULL;
    if (d->changes)
        compare_keys(d, of_a, count_a, of_b, count_b);
    free(of_a);
    free(of_b);
    return d->changes ? CODE_DONE : say_status(HEFT_E_NOMEM, path, "no memory for the metadata");
}

void metadata_diff_free(metadata_diff *d)
{
    free(d->changes);
    d->changes = NULL;
}

/* ---- output ---- */

static heft_str key_of(const metadata_diff *d, const metadata_change *c)
{
    return c->a != HEFT_NONE ? heft_meta_at(d->a, c->a).key : heft_meta_at(d->b, c->b).key;
}

/* Write a text from the first character that differs on, so that a long template shows its change.
 */
static void put_side(outbuf *o, heft_value v, size_t skipped)
{
    enum { MOST = 60 };
    if (skipped) {
        v.as.s = (heft_str){ v.as.s.ptr + skipped, v.as.s.len - skipped };
        out_format(o, "(from character %zu) ", skipped);
    }
    out_value(o, &v, MOST);
}

/* Return the number of leading bytes to skip: both are long texts that begin alike. */
static size_t skipped_bytes(const heft_value *x, const heft_value *y)
{
    enum { SHOWN = 20, LONG = 60 };
    size_t same = 0;
    if (x->kind != HEFT_KIND_STR || y->kind != HEFT_KIND_STR)
        return 0;
    while (same < x->as.s.len && same < y->as.s.len && x->as.s.ptr[same] == y->as.s.ptr[same])
        same++;
    if (same < LONG)
        return 0;
    size_t from = same - SHOWN;
    while (from < same && ((uint8_t)x->as.s.ptr[from] & 0xC0) == 0x80)
        from++;
    return from;
}

static void put_change(outbuf *o, const metadata_diff *d, const metadata_change *c)
{
    out_text(o, "metadata ");
    out_name(o, key_of(d, c));
    if (c->a == HEFT_NONE || c->b == HEFT_NONE) {
        out_text(o, c->a == HEFT_NONE ? ": only in B\n" : ": only in A\n");
        return;
    }
    heft_value x = heft_meta_at(d->a, c->a), y = heft_meta_at(d->b, c->b);
    size_t skipped = skipped_bytes(&x, &y);
    out_text(o, ": ");
    put_side(o, x, skipped);
    out_text(o, " -> ");
    put_side(o, y, skipped);
    out_char(o, '\n');
}

void metadata_diff_print(outbuf *o, const metadata_diff *d, uint32_t most)
{
    for (uint32_t i = 0; i < d->count && i < most; i++)
        put_change(o, d, &d->changes[i]);
    if (d->count > most)
        out_format(o, "metadata: %u more keys differ; -v lists all\n", d->count - most);
}

typedef struct named_value { /* a value and its children, as a member of JSON */
    const heft_file *f;
    uint32_t first;
    const char *name;
} named_value;

static heft_value value_at(const void *ctx, uint32_t i)
{
    const named_value *n = ctx;
    heft_value v = heft_meta_at(n->f, n->first + i);
    v.key = i ? v.key : str_of(n->name);
    return v;
}

static void json_side(json *j, const char *name, const heft_file *f, uint32_t value)
{
    named_value n = { f, value, name };
    json_values(j, value_at, &n, heft_meta_next(f, value) - value);
}

static void json_keys(json *j, const char *name, const metadata_diff *d, bool of_b)
{
    json_member_begin(j, name, '[');
    for (uint32_t i = 0; i < d->count; i++)
        if ((of_b ? d->changes[i].a : d->changes[i].b) == HEFT_NONE)
            json_str(j, key_of(d, &d->changes[i]));
    json_end(j, ']');
}

void metadata_diff_json(json *j, const metadata_diff *d)
{
    json_member_begin(j, "metadata", '{');
    json_member_bool(j, "equal", d->equal);
    json_keys(j, "only_in_a", d, false);
    json_keys(j, "only_in_b", d, true);
    json_member_begin(j, "changed", '[');
    for (uint32_t i = 0; i < d->count; i++) {
        const metadata_change *c = &d->changes[i];
        if (c->a == HEFT_NONE || c->b == HEFT_NONE)
            continue;
        json_line(j);
        json_begin(j, '{');
        json_member_str(j, "key", key_of(d, c));
        json_side(j, "a", d->a, c->a);
        json_side(j, "b", d->b, c->b);
        json_end(j, '}');
    }
    json_end(j, ']');
    json_end(j, '}');
}
