/* blend_values.c - which value of a parameter holds for a tensor. */
#include "base/error.h"
#include "base/text.h"
#include "blend/blending.h"

/* ---- layers ---- */

/* Find the first component of the name that is a number, "12" in "model.layers.12.weight". */
static bool find_layer(heft_str *prefix, uint64_t *layer, heft_str name)
{
    enum { DIGITS = 9 };
    for (size_t at = 0, end; at < name.len; at = end + 1) {
        uint64_t n = 0;
        for (end = at; end < name.len && name.ptr[end] >= '0' && name.ptr[end] <= '9'; end++)
            n = end - at < DIGITS ? n * 10 + (uint64_t)(name.ptr[end] - '0') : n;
        bool is_number = end > at && end - at <= DIGITS && end < name.len && name.ptr[end] == '.';
        if (is_number) {
            *prefix = (heft_str){ name.ptr, at };
            *layer = n;
            return true;
        }
        while (end < name.len && name.ptr[end] != '.')
            end++;
    }
    return false;
}

static uint32_t find_prefix(const heft_blend_layers *l, heft_str prefix)
{
    uint32_t i = 0;
    while (i < l->prefixes && !heft_str_eq(l->prefix[i], prefix))
        i++;
    return i;
}

heft_status heft_blend_count_layers(heft_blend_layers *l, const heft_file *f, heft_error *err)
{
    *l = (heft_blend_layers){ .prefixes = 0 };
    for (uint32_t t = 0; t < heft_ix_tensors(&f->x); t++) {
        heft_str prefix;
        uint64_t layer;
        if (!find_layer(&prefix, &layer, heft_ix_name(&f->x, t)))
            continue;
        uint32_t i = find_prefix(l, prefix);
        if (i == HEFT_BLEND_PREFIXES)
            return heft_error_plain(err, HEFT_E_LIMIT,
                                    "tensor %q: names have numbers in more than %U places, so that "
                                    "layers are not found",
                                    heft_ix_name(&f->x, t), (uint64_t)HEFT_BLEND_PREFIXES);
        l->prefix[i] = prefix;
        l->count[i] = layer + 1 > l->count[i] ? layer + 1 : l->count[i];
        l->prefixes += i == l->prefixes;
    }
    return HEFT_OK;
}

/* ---- rules ---- */

/* A filter is a pattern if it has a wildcard, else a part of the name. */
static bool matches(heft_str filter, heft_str name)
{
    bool is_pattern = false;
    for (size_t i = 0; i < filter.len && !is_pattern; i++)
        is_pattern = filter.ptr[i] == '*' || filter.ptr[i] == '?' || filter.ptr[i] == '[';
    if (is_pattern)
        return heft_glob(filter, name);
    const uint8_t *p = (const uint8_t *)name.ptr;
    return !filter.len || heft_str_seek(p, p + name.len, filter.ptr, filter.len);
}

static const heft_blend_rule *find_rule(const heft_blend_settings *s, heft_blend_rules r,
                                        heft_str name)
{
    const heft_blend_rule *all = s->rules.ptr;
    for (uint32_t i = r.first; i < r.first + r.count; i++)
        if (matches(all[i].filter, name))
            return &all[i];
    return NULL;
}

static void mark(uint8_t *is_used, const heft_blend_settings *s, const heft_blend_rules rules[],
                 heft_str name)
{
    for (int p = 0; p < HEFT_BLEND_PARAMETERS; p++) {
        const heft_blend_rule *r = find_rule(s, rules[p], name);
        if (r)
            is_used[r - (const heft_blend_rule *)s->rules.ptr] = 1;
    }
}

void heft_blend_mark_used(uint8_t *is_used, const heft_blend_settings *s, heft_str tensor)
{
    mark(is_used, s, s->common, tensor);
    for (uint32_t m = 0; m < s->model_count; m++)
        mark(is_used, s, s->model[m].rules, tensor);
}

/* Interpolate in a list whose first value is for the first layer, the last for the last. */
static heft_status at_layer(double *out, const double *list, uint32_t count, heft_str name,
                            const heft_blend_layers *l, heft_error *err)
{
    heft_str prefix;
    uint64_t layer;
    if (!find_layer(&prefix, &layer, name))
        return heft_error_plain(
            err, HEFT_E_ARGUMENT,
            "tensor %q is in no layer, and has a list of values by layer: add a "
            "rule with one value for it",
            name);
    uint64_t last = l->count[find_prefix(l, prefix)] - 1;
    double at = last ? (double)layer / (double)last * (double)(count - 1) : 0;
    uint32_t i = (uint32_t)at;
    i = i < count - 1 ? i : count - 2;
    double part = at - (double)i;
    *out = (1 - part) * list[i] + part * list[i + 1];
    return HEFT_OK;
}

static double default_of(const heft_blend_method *m, heft_blend_parameter p)
{
    if (p == HEFT_BLEND_NORMALIZE)
        return m->normalizes;
    return p == HEFT_BLEND_T ? 0.5 : 1;
}

heft_status heft_blend_value(double *out, const heft_blend_settings *s, uint32_t model,
                             heft_blend_parameter p, heft_str tensor, const heft_blend_layers *l,
                             heft_error *err)
{
    const heft_blend_rule *r = NULL;
    if (model != HEFT_NONE)
        r = find_rule(s, s->model[model].rules[p], tensor);
    if (!r)
        r = find_rule(s, s->common[p], tensor);
    *out = default_of(s->method, p);
    if (!r)
        return HEFT_OK;
    const double *list = (const double *)s->numbers.ptr + r->first;
    *out = *list;
    return r->count == 1 ? HEFT_OK : at_layer(out, list, r->count, tensor, l, err);
}
