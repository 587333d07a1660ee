/* profile_names.c - evaluates expressions, and expands tensor names with groups. */
#include <string.h>

#include "base/checked_math.h"
#include "companion/profile_types.h"

/* ---- expressions ---- */

typedef struct expression {
    heft_str text;
    size_t at;
    const heft_profile *p;
    const heft_file *f;
} expression;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char peek(expression *x)
{
    while (x->at < x->text.len && x->text.ptr[x->at] == ' ')
        x->at++;
    return x->at < x->text.len ? x->text.ptr[x->at] : 0;
}

bool heft_profile_number(uint64_t *out, const heft_value *v)
{
    *out = v->as.u;
    if (v->kind == HEFT_KIND_STR)
        return heft_json_u64(out, v->as.s);
    return v->kind == HEFT_KIND_UINT || (v->kind == HEFT_KIND_INT && v->as.i >= 0);
}

bool heft_profile_meta(heft_value *out, const heft_file *f, heft_str key)
{
    for (uint32_t i = 0; i < heft_meta_count(f); i = heft_meta_next(f, i)) {
        *out = heft_meta_at(f, i);
        if (heft_str_eq(out->key, key))
            return true;
    }
    return false;
}

static bool name_value(uint64_t *out, const expression *x, heft_str name)
{
    const heft_profile_size *sizes = x->p->sizes.ptr;
    for (uint32_t i = 0; i < x->p->sizes.len; i++)
        if (heft_str_eq(sizes[i].name, name)) {
            *out = sizes[i].value;
            return true;
        }
    heft_value v;
    return x->f && heft_profile_meta(&v, x->f, name) && heft_profile_number(out, &v);
}

static bool take_operand(uint64_t *out, expression *x)
{
    bool is_number = is_digit(peek(x));
    heft_str word = { x->text.ptr + x->at, 0 };
    for (; x->at < x->text.len; x->at++, word.len++) {
        char c = x->text.ptr[x->at];
        if (!is_digit(c) && (uint8_t)((c | 0x20) - 'a') > 25 && c != '_' && c != '.')
            break;
    }
    return word.len && (is_number ? heft_json_u64(out, word) : name_value(out, x, word));
}

static bool take_product(uint64_t *out, expression *x)
{
    uint64_t next;
    bool ok = take_operand(out, x);
    while (ok && (peek(x) == '*' || peek(x) == '/')) {
        bool is_product = x->text.ptr[x->at++] == '*';
        ok = take_operand(&next, x);
        if (ok && is_product)
            ok = heft_mul(out, *out, next);
        else if (ok && next)
            *out = heft_div(*out, next);
        else
            ok = false;
    }
    return ok;
}

bool heft_profile_value(uint64_t *out, const heft_profile *p, const heft_file *f, heft_str text)
{
    expression x = { text, 0, p, f };
    uint64_t next;
    bool ok = take_product(out, &x);
    while (ok && (peek(&x) == '+' || peek(&x) == '-')) {
        bool is_plus = x.text.ptr[x.at++] == '+';
        ok = take_product(&next, &x);
        if (ok && is_plus)
            ok = heft_add(out, *out, next);
        else if (ok && next <= *out)
            *out -= next;
        else
            ok = false;
    }
    return ok && !peek(&x);
}

/* ---- names ---- */

typedef struct heft_profile_group group;

/* Return the position of `needle` in the text, or the length of the text. */
static size_t find_text(heft_str text, const char *needle)
{
    size_t len = heft_lit(needle).len, at = 0;
    while (at + len <= text.len && memcmp(text.ptr + at, needle, len) != 0)
        at++;
    return at + len <= text.len ? at : text.len;
}

bool heft_profile_pattern_open(heft_profile_pattern *out, const heft_profile *p, const heft_file *f,
                               heft_str text)
{
    *out = (heft_profile_pattern){ .text = text };
    for (size_t at = 0; at < text.len; at++) {
        if (text.ptr[at] != '{')
            continue;
        heft_str rest = { text.ptr + at + 1, text.len - at - 1 };
        rest.len = find_text(rest, "}");
        if (out->count == HEFT_PROFILE_GROUPS || at + 1 + rest.len == text.len)
            return false;
        group *g = &out->group[out->count++];
        size_t dots = find_text(rest, "..");
        *g = (group){ .at = at + 1, .len = rest.len, .count = 1, .is_range = dots < rest.len };
        for (size_t i = 0; i < rest.len; i++)
            g->count += rest.ptr[i] == '|';
        if (g->is_range) {
            heft_str last = { rest.ptr + dots + 2, rest.len - dots - 2 };
            if (!heft_profile_value(&g->first, p, f, (heft_str){ rest.ptr, dots }) ||
                !heft_profile_value(&g->last, p, f, last))
                return false;
            if (!heft_add(&g->count, g->last - g->first, 1))
                g->count = UINT64_MAX;
            if (g->last < g->first)
                g->count = 0;
        }
        at += rest.len + 1;
    }
    return true;
}

bool heft_profile_pattern_next(heft_profile_pattern *x, bool in_ranges)
{
    for (uint32_t i = x->count; i--;) {
        group *g = &x->group[i];
        if (g->is_range != in_ranges)
            continue;
        if (++g->chosen < g->count)
            return true;
        g->chosen = 0;
    }
    return false;
}

/* Return the selected alternative of a list. */
static heft_str alternative(heft_str text, uint64_t chosen)
{
    while (chosen--) {
        size_t bar = find_text(text, "|");
        text = (heft_str){ text.ptr + bar + 1, text.len - bar - 1 };
    }
    return (heft_str){ text.ptr, find_text(text, "|") };
}

size_t heft_profile_pattern_name(char out[HEFT_PROFILE_NAME], const heft_profile_pattern *x,
                                 heft_str prefix)
{
    char digits[20];
    size_t at = 0;
    heft_out o = { .buf = (uint8_t *)out, .cap = HEFT_PROFILE_NAME };
    heft_out_str(&o, prefix);
    for (uint32_t i = 0; i < x->count; i++) {
        const group *g = &x->group[i];
        heft_str within = { x->text.ptr + g->at, g->len };
        heft_out_str(&o, (heft_str){ x->text.ptr + at, g->at - 1 - at });
        if (g->is_range)
            heft_out_str(&o, (heft_str){ digits, heft_u64_text(digits, g->first + g->chosen) });
        else
            heft_out_str(&o, alternative(within, g->chosen));
        at = g->at + g->len + 1;
    }
    heft_out_str(&o, (heft_str){ x->text.ptr + at, x->text.len - at });
    return o.st ? 0 : o.len;
}
