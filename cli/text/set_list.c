#include "text/set_list.h"

#include <heft/companion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/outbuf.h"

struct set_list {
    struct set_list *next;
    heft_settings *texts;
    void *numbers;
};

heft_dtype set_list_dtype(const heft_value *existing)
{
    return existing->kind == HEFT_KIND_ARRAY ? existing->as.array.dtype : (heft_dtype)HEFT_UNTYPED;
}

void set_list_free(struct set_list *owner)
{
    while (owner) {
        struct set_list *next = owner->next;
        heft_settings_close(owner->texts);
        free(owner->numbers);
        free(owner);
        owner = next;
    }
}

/* ---- numbers ---- */

static bool is_number(const heft_value *v)
{
    return v->kind == HEFT_KIND_INT || (v->kind == HEFT_KIND_STR && v->as.s.len);
}

/* A number that is not an integer is spelled as in the text. */
static bool number_at(double *out, const heft_value *v)
{
    enum { LONGEST = 64 };
    char text[LONGEST], *end;
    if (v->kind == HEFT_KIND_INT) {
        *out = (double)v->as.i;
        return v->as.i <= INT64_C(1) << 53 && v->as.i >= -(INT64_C(1) << 53);
    }
    if (!is_number(v) || v->as.s.len >= LONGEST)
        return false;
    memcpy(text, v->as.s.ptr, v->as.s.len);
    text[v->as.s.len] = 0;
    *out = strtod(text, &end);
    return !*end && isfinite(*out);
}

static heft_dtype type_for(const double *numbers, size_t count)
{
    bool is_int = true, is_small = true;
    for (size_t i = 0; i < count; i++) {
        is_int = is_int && numbers[i] == floor(numbers[i]);
        is_small = is_small && numbers[i] >= INT32_MIN && numbers[i] <= INT32_MAX;
    }
    return !is_int ? HEFT_F64 : is_small ? HEFT_I32 : HEFT_I64;
}

/* Return false if a number changes, other than by rounding to a floating-point type. */
static bool store(void *to, heft_dtype type, const double *numbers, size_t count)
{
    const heft_dtype_info *d = heft_dtype_get(type);
    double back;
    if (!heft_dtype_cast(to, type, numbers, HEFT_F64, count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!heft_dtype_to_f64(&back, type, to, i, 1) ||
            (d->kind == HEFT_DTYPE_FLOAT ? !isfinite(back) : back != numbers[i]))
            return false;
    return true;
}

static list_result read_numbers(struct set_list *own, heft_value *to, heft_dtype stored,
                                uint32_t count)
{
    enum { WIDEST = 8 };
    double *numbers = calloc((size_t)count + 1, sizeof *numbers);
    bool ok = true;
    own->numbers = calloc((size_t)count + 1, WIDEST);
    if (!numbers || !own->numbers) {
        free(numbers);
        return LIST_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count && ok; i++) {
        heft_value v = heft_settings_value_at(own->texts, i + 1);
        ok = number_at(&numbers[i], &v);
    }
    heft_dtype type = stored ? stored : type_for(numbers, count);
    const heft_dtype_info *d = heft_dtype_get(type);
    ok = ok && d && d->block_elems == 1 && d->block_bytes <= WIDEST &&
         store(own->numbers, type, numbers, count);
    free(numbers);
    to->kind = HEFT_KIND_ARRAY;
    to->as.array.ptr = own->numbers;
    to->as.array.count = count;
    to->as.array.dtype = type;
    return ok ? LIST_READ : LIST_IS_NONE;
}

/* ---- other elements ---- */

static list_result read_scalars(const struct set_list *own, heft_value *to, size_t *more,
                                heft_kind kind, uint32_t count, uint32_t at)
{
    to->kind = HEFT_KIND_LIST;
    to->as.container.count = count;
    to->as.container.end = at + count + 1;
    for (uint32_t i = 0; i < count; i++) {
        to[i + 1] = heft_settings_value_at(own->texts, i + 1);
        if (to[i + 1].kind != kind)
            return LIST_IS_NONE;
    }
    *more = count;
    return LIST_READ;
}

/* Make an array of the booleans that follow *to. */
static list_result pack_booleans(struct set_list *own, heft_value *to, size_t count)
{
    uint8_t *bytes = own->numbers = calloc(count + 1, 1);
    if (!bytes)
        return LIST_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        bytes[i] = to[i + 1].as.b;
    to->kind = HEFT_KIND_ARRAY;
    to->as.array.ptr = bytes;
    to->as.array.count = (uint32_t)count;
    to->as.array.dtype = HEFT_BOOL;
    return LIST_READ;
}

static bool parse(heft_settings **out, heft_str text)
{
    outbuf o;
    out_open(&o, -1);
    out_text(&o, "{\"v\":");
    out_bytes(&o, text.ptr, text.len);
    out_char(&o, '}');
    bool ok = !o.os && !heft_settings_parse_json(out, (heft_str){ o.buf, o.used }, NULL, NULL);
    out_free(&o);
    return ok;
}

list_result set_list_read(struct set_list **owner, heft_value *to, size_t *more, uint32_t at,
                          heft_value given, list_elements wanted)
{
    heft_str text = given.as.s;
    size_t first = 1;
    if (text.len < 2 || *text.ptr != '[' || text.ptr[text.len - 1] != ']')
        return LIST_IS_NONE;
    struct set_list *own = calloc(1, sizeof *own);
    if (!own)
        return LIST_NO_MEMORY;
    own->next = *owner;
    *owner = own;
    if (!parse(&own->texts, text))
        return LIST_IS_NONE;
    first += strspn(text.ptr + first, " \t\r\n"); /* a ] follows */
    heft_value list = heft_settings_value_at(own->texts, 0);
    uint32_t count = list.as.container.count;
    if (list.kind != HEFT_KIND_LIST || list.as.container.end != count + 1)
        return LIST_IS_NONE;
    bool is_text = text.ptr[first] == '"', is_bool = strchr("tf", text.ptr[first]);
    bool is_scalar = is_text || is_bool || (!count && !wanted.stored);
    heft_kind kind = is_bool ? HEFT_KIND_BOOL : HEFT_KIND_STR;
    bool is_other = wanted.kind && (is_scalar ? count && kind != wanted.kind : !wanted.stored);
    if (is_other || (is_scalar && wanted.stored))
        return LIST_IS_NONE;
    if (!is_scalar)
        return read_numbers(own, to, wanted.stored, count);
    list_result r = read_scalars(own, to, more, kind, count, at);
    if (r != LIST_READ || !is_bool || !wanted.packs_booleans)
        return r;
    *more = 0;
    return pack_booleans(own, to, count);
}
