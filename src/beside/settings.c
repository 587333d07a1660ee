/* settings.c - what a JSON object says at its top level. */
#include "base/error.h"
#include "base/text.h"
#include "beside/beside.h"

struct heft_settings {
    heft_memory mem;
    heft_arena arena;
    heft_vec values;
};

/* Numbers that are no integers stay as they are written. */
static void set_number(heft_value *v, heft_str number)
{
    bool negative = number.len && *number.ptr == '-';
    uint64_t size;
    heft_str digits = { number.ptr + negative, number.len - negative };
    if (!heft_json_u64(&size, digits) || (negative && size > INT64_MAX)) {
        v->kind = HEFT_KIND_STR;
        v->as.s = number;
    } else if (negative || size <= INT64_MAX) {
        v->kind = HEFT_KIND_INT;
        v->as.i = negative ? -(int64_t)size : (int64_t)size;
    } else {
        v->kind = HEFT_KIND_UINT;
        v->as.u = size;
    }
}

/* False for what is no text, number or truth value. */
static bool set_value(heft_value *v, heft_json_kind k, heft_str text)
{
    if (k == HEFT_JSON_STRING)
        *v = (heft_value){ .kind = HEFT_KIND_STR, .key = v->key, .as.s = text };
    else if (k == HEFT_JSON_TRUE || k == HEFT_JSON_FALSE)
        *v = (heft_value){ .kind = HEFT_KIND_BOOL, .key = v->key, .as.b = k == HEFT_JSON_TRUE };
    else if (k == HEFT_JSON_NUMBER)
        set_number(v, text);
    else
        return false;
    return true;
}

/* The text of the document is the caller's: what is kept is copied. */
static bool keep(heft_settings *s, const heft_value *v)
{
    heft_value *to = heft_vec_push(&s->mem, &s->values, sizeof *to);
    if (!to)
        return false;
    *to = *v;
    to->key = heft_arena_copy(&s->arena, v->key);
    if (v->kind == HEFT_KIND_STR)
        to->as.s = heft_arena_copy(&s->arena, v->as.s);
    return to->key.ptr && (v->kind != HEFT_KIND_STR || to->as.s.ptr);
}

static heft_status read(heft_settings *s, heft_json *j, heft_error *err)
{
    heft_status st = heft_beside_expect(j, HEFT_JSON_OBJECT, "the document");
    while (!st && heft_beside_key(j)) {
        heft_value v = { .key = j->text };
        heft_json_kind k = heft_json_next(j);
        if (j->st)
            break;
        if (!set_value(&v, k, j->text))
            st = heft_json_skip(j, k);
        else if (!keep(s, &v))
            st = heft_beside_full(err);
    }
    if (!st && !j->st)
        st = heft_beside_expect(j, HEFT_JSON_END, "the document");
    return st ? st : j->st;
}

heft_status heft_settings_json(heft_settings **out, heft_str text, const heft_host *host,
                               heft_error *err)
{
    heft_error own;
    const heft_allocator *al = heft_beside_memory(&host, err);
    err = err ? err : &own;
    *out = NULL;
    if (!al)
        return HEFT_E_ARGUMENT;
    heft_settings *s = al->resize(al->ctx, NULL, 0, sizeof *s, 16);
    if (!s)
        return heft_beside_full(err);
    *s = (heft_settings){ .mem = { al, UINT64_MAX, 0 } };
    s->arena.mem = &s->mem;
    heft_json j = heft_json_open(text, 0, HEFT_BESIDE_DEPTH, &s->arena, err);
    heft_status st = read(s, &j, err);
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
    al->resize(al->ctx, s, sizeof *s, 0, 16);
}

size_t heft_settings_count(const heft_settings *s)
{
    return s->values.len;
}

heft_value heft_settings_at(const heft_settings *s, size_t i)
{
    return ((const heft_value *)s->values.ptr)[i];
}

/* As readers of JSON do: of a key that occurs twice, the last one counts. */
bool heft_settings_find(heft_value *out, const heft_settings *s, const char *key)
{
    for (size_t i = s->values.len; i--;)
        if (heft_str_is(heft_settings_at(s, i).key, key)) {
            *out = heft_settings_at(s, i);
            return true;
        }
    return false;
}
