/* profile_names.c - expressions, and names with groups in them. */
#include <string.h>

#include "base/checked_math.h"
#include "companion/profile_types.h"

/* ---- expressions ---- */

typedef struct formula {
    heft_str text;
    size_t at;
    const heft_profile *p;
    const heft_file *f;
} formula;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char look(formula *x)
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

static bool name_value(uint64_t *out, const formula *x, heft_str name)
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

static bool take_operand(uint64_t *out, formula *x)
{
    bool number = is_digit(look(x));
    heft_str word = { x->text.ptr + x->at, 0 };
    for (; x->at < x->text.len; x->at++, word.len++) {
        char c = x->text.ptr[x->at];
        if (!is_digit(c) && (uint8_t)((c | 0x20) - 'a') > 25 && c != '_' && c != '.')
            break;
    }
    return word.len && (number ? heft_json_u64(out, word) : name_value(out, x, word));
}

static bool take_product(uint64_t *out, formula *x)
{
    uint64_t next;
    bool fine = take_operand(out, x);
    while (fine && (look(x) == '*' || look(x) == '/')) {
        bool times = x->text.ptr[x->at++] == '*';
        fine = take_operand(&next, x);
        if (fine && times)
            fine = heft_mul(out, *out, next);
        else if (fine && next)
            *out = heft_div(*out, next);
        else
            fine = false;
    }
    return fine;
}

bool heft_profile_value(uint64_t *out, const heft_profile *p, const heft_file *f, heft_str text)
{
    formula x = { text, 0, p, f };
    uint64_t next;
    bool fine = take_product(out, &x);
    while (fine && (look(&x) == '+' || look(&x) == '-')) {
        bool plus = x.text.ptr[x.at++] == '+';
        fine = take_product(&next, &x);
        if (fine && plus)
            fine = heft_add(out, *out, next);
        else if (fine && next <= *out)
            *out -= next;
        else
            fine = false;
    }
    return fine && !look(&x);
}

/* ---- names ---- */

typedef struct heft_profile_group group;

/* Where needle begins in the group, or its length. */
static size_t find_in(heft_str text, const char *needle)
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
        rest.len = find_in(rest, "}");
        if (out->count == HEFT_PROFILE_GROUPS || at + 1 + rest.len == text.len)
            return false;
        group *g = &out->group[out->count++];
        size_t dots = find_in(rest, "..");
        *g = (group){ .at = at + 1, .len = rest.len, .count = 1, .is_range = dots < rest.len };
        for (size_t i = 0; i < rest.len; i++)
            g->count += rest.ptr[i] == '|';
        if (g->is_range) {
            heft_str last = { rest.ptr + dots + 2, rest.len - dots - 2 };
            if (!heft_profile_value(&g->first, p, f, (heft_str){ rest.ptr, dots }) ||
                !heft_profile_value(&g->last, p, f, last))
                return false;
            g->count = g->last < g->first ? 0 : g->last - g->first + 1;
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

/* The alternative that was chosen. */
static heft_str alternative(heft_str text, uint64_t chosen)
{
    while (chosen--) {
        size_t bar = find_in(text, "|");
        text = (heft_str){ text.ptr + bar + 1, text.len - bar - 1 };
    }
    return (heft_str){ text.ptr, find_in(text, "|") };
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
