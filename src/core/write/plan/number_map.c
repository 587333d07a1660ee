/* number_map.c - keep numbers with keys MAP.NAME in the metadata map that a format has for
 * numbers. */
#include "base/text.h"
#include "core/write/plan/plan.h"
#include "model/values.h"

bool heft_is_in_number_map(const heft_format *f, heft_str key, heft_str *name)
{
    size_t len = f->number_map ? heft_lit(f->number_map).len : 0;
    if (!len || key.len <= len || key.ptr[len] != '.' || memcmp(key.ptr, f->number_map, len) != 0)
        return false;
    *name = (heft_str){ key.ptr + len + 1, key.len - len - 1 };
    return true;
}

bool heft_is_map_number(const heft_format *f, const heft_value *v, heft_str *name)
{
    return v->kind >= HEFT_KIND_BOOL && v->kind <= HEFT_KIND_FLOAT &&
           heft_is_in_number_map(f, v->key, name);
}

heft_status heft_check_map_number(const heft_format *f, const heft_value *v, heft_error *err)
{
    heft_str name;
    if (!heft_is_in_number_map(f, v->key, &name) || (name.len && heft_is_map_number(f, v, &name)))
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_ARGUMENT,
                            name.len ? "metadata %q: a scalar of a %s must be a number or a boolean"
                                     : "metadata %q: a scalar of a %s needs a name",
                            v->key, f->title);
}

static bool is_map(const heft_format *f, const heft_value *v)
{
    return v->kind == HEFT_KIND_MAP && heft_str_is(v->key, f->number_map);
}

/* Copy the existing map, if any, and add the numbers. */
static heft_status rebuild_map(heft_planner *p, const heft_index *old, uint32_t count)
{
    heft_value head = { .kind = HEFT_KIND_MAP, .key = heft_lit(p->format->number_map) };
    heft_status st = heft_ix_meta(&p->x, head);
    for (uint32_t i = 0; i < count && !st; i = heft_ix_value_next(old, i)) {
        const heft_value *v = heft_ix_value(old, i);
        for (uint32_t k = i + 1; is_map(p->format, v) && k < v->as.container.end && !st;
             k = heft_ix_value_next(old, k))
            st = heft_ix_copy_value(&p->x, old, k, HEFT_NONE);
    }
    for (uint32_t i = 0; i < count && !st; i = heft_ix_value_next(old, i)) {
        heft_value v = *heft_ix_value(old, i);
        if (heft_is_map_number(p->format, &v, &v.key))
            st = heft_ix_meta(&p->x, v);
    }
    if (!st)
        heft_ix_meta_end(&p->x);
    return st;
}

static heft_status rebuild_metadata(heft_planner *p, const heft_index *old, uint32_t count)
{
    heft_str name;
    uint32_t map = HEFT_NONE, dropped;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < count && !st; i = heft_ix_value_next(old, i)) {
        const heft_value *v = heft_ix_value(old, i);
        if (!is_map(p->format, v) && !heft_is_map_number(p->format, v, &name)) {
            st = heft_ix_copy_value(&p->x, old, i, HEFT_NONE);
        } else if (map == HEFT_NONE) {
            map = p->x.values.len;
            st = rebuild_map(p, old, count);
        }
    }
    return st ? st : heft_ix_meta_keep_last(&p->x, map, &dropped);
}

heft_status heft_planner_nest_numbers(heft_planner *p)
{
    heft_str name;
    bool has_numbers = false;
    for (uint32_t i = 0; i < p->x.values.len && !has_numbers; i = heft_ix_value_next(&p->x, i))
        has_numbers = heft_is_map_number(p->format, heft_ix_value(&p->x, i), &name);
    if (!has_numbers)
        return HEFT_OK;
    heft_index old = { .values = p->x.values };
    p->x.values = (heft_vec){ NULL, 0, 0 };
    heft_status st = rebuild_metadata(p, &old, old.values.len);
    heft_vec_free(&p->x.mem, &old.values, sizeof(heft_value));
    return st;
}
