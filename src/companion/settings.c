/* settings.c - reads a JSON object into a flat list of values, with each container before the
 * members. */
#include "base/error.h"

#include "base/text.h"
#include "companion/companion_text.h"
#include "model/index.h"
#include <heft/companion.h>

/* Limits memory, since a value takes far more than the two bytes of "1,". */
enum { MAX_VALUES = 1 << 20 };

struct heft_settings {
    heft_memory mem;
    heft_arena arena;
    heft_vec values;
    heft_vec scalars; /* uint32_t: indexes of strings, numbers and booleans at the top level */
};

typedef struct reader {
    heft_settings *s;
    heft_json j;
    uint32_t open[HEFT_COMPANION_DEPTH]; /* containers around the next value, without the root */
    uint32_t depth;
    heft_str key; /* key of the next value; empty in a list */
    heft_error *err;
} reader;

/* Convert a JSON token.  A number that is not an integer becomes a string; containers are empty for
 * now. */
static heft_value value_of(heft_json_kind k, heft_str text)
{
    heft_value v = { .kind = HEFT_KIND_NULL };
    bool negative = k == HEFT_JSON_NUMBER && *text.ptr == '-';
    uint64_t size;
    if (k == HEFT_JSON_TRUE || k == HEFT_JSON_FALSE)
        return (heft_value){ .kind = HEFT_KIND_BOOL, .as.b = k == HEFT_JSON_TRUE };
    if (k == HEFT_JSON_OBJECT || k == HEFT_JSON_ARRAY)
        v.kind = k == HEFT_JSON_OBJECT ? HEFT_KIND_MAP : HEFT_KIND_LIST;
    if (k != HEFT_JSON_STRING && k != HEFT_JSON_NUMBER)
        return v;
    heft_str digits = { text.ptr + negative, text.len - negative };
    if (k == HEFT_JSON_STRING || !heft_json_u64(&size, digits) || (negative && size > INT64_MAX))
        return (heft_value){ .kind = HEFT_KIND_STR, .as.s = text };
    if (!negative && size > INT64_MAX)
        return (heft_value){ .kind = HEFT_KIND_UINT, .as.u = size };
    return (heft_value){ .kind = HEFT_KIND_INT, .as.i = negative ? -(int64_t)size : (int64_t)size };
}

static heft_value *at(const heft_settings *s, uint32_t i)
{
    return (heft_value *)s->values.ptr + i;
}

/* ---- reading ---- */

/* Append a copy of a value, since the caller owns the text of the document. */
static bool add_copy(heft_settings *s, heft_value v)
{
    v.key = heft_arena_copy(&s->arena, v.key);
    if (v.kind == HEFT_KIND_STR)
        v.as.s = heft_arena_copy(&s->arena, v.as.s);
    return v.key.ptr && (v.kind != HEFT_KIND_STR || v.as.s.ptr) &&
           heft_vec_add(&s->mem, &s->values, &v, sizeof v);
}

static heft_status add(reader *r, heft_json_kind k)
{
    heft_value v = value_of(k, r->j.text);
    v.key = r->key;
    r->key = heft_lit("");
    if (r->s->values.len == MAX_VALUES)
        return heft_error_plain(r->err, HEFT_E_LIMIT, "the document has more than %U values",
                                (uint64_t)MAX_VALUES);
    uint32_t number = r->s->values.len;
    bool is_scalar = !r->depth && v.kind != HEFT_KIND_NULL && !heft_value_nests(&v);
    if (!add_copy(r->s, v) ||
        (is_scalar && !heft_vec_add(&r->s->mem, &r->s->scalars, &number, sizeof number)))
        return heft_companion_no_memory(r->err);
    if (r->depth)
        at(r->s, r->open[r->depth - 1])->as.container.count++;
    if (k == HEFT_JSON_OBJECT || k == HEFT_JSON_ARRAY)
        r->open[r->depth++] = number; /* fits: the root also counts as a level */
    return HEFT_OK;
}

static heft_status read_next(reader *r, bool *more)
{
    heft_json_kind k = heft_json_next(&r->j);
    bool ends = k == HEFT_JSON_OBJECT_END || k == HEFT_JSON_ARRAY_END;
    *more = !ends || r->depth;
    if (r->j.st)
        return r->j.st;
    if (k == HEFT_JSON_KEY)
        r->key = r->j.text;
    else if (!ends)
        return add(r, k);
    else if (r->depth)
        at(r->s, r->open[--r->depth])->as.container.end = r->s->values.len;
    return HEFT_OK;
}

heft_status heft_settings_parse_json(heft_settings **out, heft_str text, const heft_host *host,
                                     heft_error *err)
{
    heft_error unused;
    const heft_allocator *al = heft_companion_allocator(&host, err);
    err = err ? err : &unused;
    *out = NULL;
    if (!al)
        return HEFT_E_ARGUMENT;
    heft_settings *s = heft_alloc(al, sizeof *s, 16);
    if (!s)
        return heft_companion_no_memory(err);
    *s = (heft_settings){ .mem = { al, UINT64_MAX, 0 } };
    s->arena.mem = &s->mem;
    reader r = { .s = s, .key = heft_lit(""), .err = err };
    r.j = heft_json_open(text, 0, HEFT_COMPANION_DEPTH, &s->arena, err);
    heft_status st = heft_companion_expect(&r.j, HEFT_JSON_OBJECT, "the document");
    for (bool more = true; !st && more;)
        st = read_next(&r, &more);
    if (!st)
        st = heft_companion_expect(&r.j, HEFT_JSON_END, "the document");
    if (st)
        heft_settings_close(s);
    else
        *out = s;
    return st;
}

void heft_settings_close(heft_settings *s)
{
    if (!s)
        return;
    const heft_allocator *al = s->mem.al;
    heft_arena_free(&s->arena);
    heft_vec_free(&s->mem, &s->values, sizeof(heft_value));
    heft_vec_free(&s->mem, &s->scalars, sizeof(uint32_t));
    heft_free(al, s, sizeof *s, 16);
}

/* ---- the top level ---- */

uint32_t heft_settings_count(const heft_settings *s)
{
    return s->scalars.len;
}

heft_value heft_settings_at(const heft_settings *s, uint32_t i)
{
    return i < s->scalars.len ? *at(s, ((const uint32_t *)s->scalars.ptr)[i])
                              : (heft_value){ .kind = HEFT_KIND_NULL };
}

/* The last value of a repeated key wins, as in common JSON readers. */
bool heft_settings_find(heft_value *out, const heft_settings *s, heft_str key)
{
    for (uint32_t i = s->scalars.len; i--;)
        if (heft_str_eq(heft_settings_at(s, i).key, key)) {
            *out = heft_settings_at(s, i);
            return true;
        }
    return false;
}

/* ---- all levels ---- */

uint32_t heft_settings_value_count(const heft_settings *s)
{
    return s->values.len;
}

heft_value heft_settings_value_at(const heft_settings *s, uint32_t i)
{
    return i < s->values.len ? *at(s, i) : (heft_value){ .kind = HEFT_KIND_NULL };
}

uint32_t heft_settings_next(const heft_settings *s, uint32_t i)
{
    return i < s->values.len ? heft_value_next(at(s, i), i) : s->values.len;
}

/* Return how many bytes of the path match the value, by key or, in a list, by index; 0 if the value
 * does not match. */
static size_t match_length(heft_str path, const heft_value *v, uint32_t number, bool in_list)
{
    char digits[20];
    heft_str name = in_list ? (heft_str){ digits, heft_u64_text(digits, number) } : v->key;
    bool fits = name.len <= path.len && !memcmp(path.ptr, name.ptr, name.len);
    if (!fits || (name.len < path.len && path.ptr[name.len] != '.'))
        return 0;
    return name.len + (name.len + 1 < path.len);
}

/* Keys may contain dots: the longest matching key wins and, among equal keys, the last. */
uint32_t heft_settings_find_path(const heft_settings *s, heft_str path)
{
    uint32_t i = 0, end = s->values.len, found = HEFT_NONE;
    bool in_list = false;
    while (path.len) {
        size_t longest = 0;
        for (uint32_t number = 0; i < end; i = heft_settings_next(s, i), number++) {
            size_t len = match_length(path, at(s, i), number, in_list);
            if (len && len >= longest) {
                found = i;
                longest = len;
            }
        }
        if (!longest)
            return HEFT_NONE;
        path = (heft_str){ path.ptr + longest, path.len - longest };
        in_list = at(s, found)->kind == HEFT_KIND_LIST;
        i = found + 1;
        end = heft_settings_next(s, found);
    }
    return found;
}
