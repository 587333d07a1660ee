/* map_numbers.c - the numbers that a map needs of a model: its settings, or its metadata. */
#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"
#include "map/map_rules.h"

/* A text that is being read. */
typedef struct reader {
    const heft_map_numbers *n;
    heft_str s;
} reader;

static const heft_map_number unknown = { 0, false };

/* Objects count as 1, for conditions. */
static heft_map_number of_value(const heft_value *v)
{
    if (v->kind == HEFT_KIND_BOOL)
        return (heft_map_number){ v->as.b, true };
    if (v->kind == HEFT_KIND_UINT)
        return (heft_map_number){ v->as.u, true };
    if (v->kind == HEFT_KIND_INT && v->as.i >= 0)
        return (heft_map_number){ (uint64_t)v->as.i, true };
    return (heft_map_number){ 1, v->kind == HEFT_KIND_MAP };
}

/* A key with a dot before it follows the architecture in the metadata of a GGUF file. */
static heft_map_number of_metadata(const heft_map_numbers *n, heft_str key)
{
    for (uint32_t i = 0; i < n->x->values.len; i = heft_ix_value_next(n->x, i)) {
        const heft_value *v = heft_ix_value(n->x, i);
        heft_str rest = v->key;
        if (*key.ptr == '.') {
            size_t skip = n->architecture.len;
            if (!skip || rest.len < skip || memcmp(rest.ptr, n->architecture.ptr, skip) != 0)
                continue;
            rest = (heft_str){ rest.ptr + skip, rest.len - skip };
        }
        if (heft_str_eq(rest, key))
            return of_value(v);
    }
    return unknown;
}

static heft_map_number of_name(const heft_map_numbers *n, heft_str name)
{
    for (uint32_t i = n->lets.len; i--;)
        if (heft_str_eq(HEFT_MAP_AT(n->m, lets, heft_map_let, i)->name, name))
            return ((const heft_map_number *)n->lets.ptr)[i];
    uint32_t at = n->config ? heft_settings_find_path(n->config, name) : HEFT_NONE;
    if (at != HEFT_NONE) {
        heft_value v = heft_settings_value_at(n->config, at);
        return of_value(&v);
    }
    return of_metadata(n, name);
}

/* ---- expressions ---- */

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.';
}

static char peek(reader *r)
{
    while (r->s.len && *r->s.ptr == ' ')
        r->s = (heft_str){ r->s.ptr + 1, r->s.len - 1 };
    return r->s.len ? *r->s.ptr : 0;
}

static bool take(reader *r, char c)
{
    if (peek(r) != c)
        return false;
    r->s = (heft_str){ r->s.ptr + 1, r->s.len - 1 };
    return true;
}

static heft_map_number read_word(reader *r)
{
    heft_str word = { (peek(r), r->s.ptr), 0 };
    uint64_t value = 0;
    bool is_number = true, fits = true;
    while (r->s.len && is_word(*r->s.ptr)) {
        uint64_t digit = (uint64_t)(*r->s.ptr - '0');
        is_number = is_number && digit < 10;
        fits = fits && is_number && heft_mul(&value, value, 10) && heft_add(&value, value, digit);
        r->s = (heft_str){ r->s.ptr + 1, r->s.len - 1 };
        word.len++;
    }
    if (!word.len)
        return unknown;
    return is_number ? (heft_map_number){ value, fits } : of_name(r->n, word);
}

static heft_map_number read_product(reader *r)
{
    heft_map_number a = read_word(r);
    for (;;) {
        bool divides = take(r, '/');
        if (!divides && !take(r, '*'))
            return a;
        heft_map_number b = read_word(r);
        a.is_known = a.is_known && b.is_known && (!divides || b.value);
        if (a.is_known && divides)
            a.value = heft_div(a.value, b.value);
        else if (a.is_known)
            a.is_known = heft_mul(&a.value, a.value, b.value);
    }
}

static heft_map_number read_sum(reader *r)
{
    heft_map_number a = read_product(r);
    for (;;) {
        bool subtracts = take(r, '-');
        if (!subtracts && !take(r, '+'))
            return a;
        heft_map_number b = read_product(r);
        a.is_known = a.is_known && b.is_known && (!subtracts || a.value >= b.value);
        if (a.is_known && subtracts)
            a.value -= b.value;
        else if (a.is_known)
            a.is_known = heft_add(&a.value, a.value, b.value);
    }
}

heft_map_number heft_map_evaluate(const heft_map_numbers *n, heft_str text)
{
    reader r = { n, text };
    heft_map_number a = read_sum(&r);
    while (!a.is_known && take(&r, '|'))
        a = read_sum(&r);
    return a;
}

bool heft_map_holds(const heft_map_numbers *n, const heft_map_condition *c)
{
    heft_map_number v = { 1, true };
    if (c->expression.len)
        v = heft_map_evaluate(n, c->expression);
    return (v.is_known && v.value) != c->is_negated;
}

/* ---- all numbers of a map ---- */

heft_status heft_map_numbers_begin(heft_map_numbers *n)
{
    n->mem = (heft_memory){ n->m->host->allocator, UINT64_MAX, 0 };
    for (uint32_t i = 0; i < n->x->values.len; i = heft_ix_value_next(n->x, i)) {
        const heft_value *v = heft_ix_value(n->x, i);
        if (v->kind == HEFT_KIND_STR && heft_str_is(v->key, "general.architecture"))
            n->architecture = v->as.s;
    }
    for (uint32_t i = 0; i < n->m->lets.len; i++) {
        heft_map_number v = heft_map_evaluate(n, HEFT_MAP_AT(n->m, lets, heft_map_let, i)->text);
        if (!heft_vec_add(&n->mem, &n->lets, &v, sizeof v))
            return heft_error_no_memory(n->err, "for the numbers of a map");
    }
    return HEFT_OK;
}

void heft_map_numbers_end(heft_map_numbers *n)
{
    heft_vec_free(&n->mem, &n->lets, sizeof(heft_map_number));
}
