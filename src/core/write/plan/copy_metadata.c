/* copy_metadata.c - copy the attributes of a tensor to the planned model. */
#include "core/write/plan/plan.h"

#include <heft/scheme.h>

#include "base/error.h"
#include "base/text.h"
#include "model/values.h"
#include "scheme/recognition.h"
#include "scheme/refuse.h"

/* ---- keep numbers with keys MAP ---- */

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

typedef struct torn_check {
    heft_planner *p;
    const heft_file *in;
    const heft_schemes *before;
    heft_schemes *after; /* the quantised tensors of the plan; NULL: not needed */
    const uint32_t *planned;
} torn_check;

static uint32_t planned_id(const torn_check *c, uint32_t tensor)
{
    return c->planned ? c->planned[tensor] : tensor;
}

/* Scales of activations say nothing about the stored numbers. */
static bool is_needed(const heft_quantised_part *part)
{
    heft_str role = heft_lit(part->role);
    return !heft_str_is(role, "input_scale") && !heft_str_is(role, "output_scale");
}

static heft_status warn(const torn_check *c, const heft_quantised *q,
                        const heft_quantised_part *part, const char *what)
{
    heft_error text;
    heft_error_plain(&text, HEFT_E_LOSSY, "quantised tensor %q (%q): its %s %q %s", q->name,
                     q->scheme, part->role, heft_ix_name(&c->in->x, part->tensor), what);
    return heft_plan_warn(&c->p->plan, "heft/torn-tensor", text.message);
}

/* Return the first needed part that is left out, and how many are planned. */
static uint32_t count_planned(heft_quantised_part *missing, const torn_check *c, uint32_t i)
{
    uint32_t count = heft_schemes_at(c->before, i).part_count, planned = 0;
    *missing = (heft_quantised_part){ HEFT_NONE, NULL };
    for (uint32_t k = 0; k < count; k++) {
        heft_quantised_part part = heft_schemes_part_at(c->before, i, k);
        bool is_planned = planned_id(c, part.tensor) != HEFT_NONE;
        planned += is_planned && is_needed(&part);
        if (!is_planned && !missing->role && is_needed(&part))
            *missing = part;
    }
    return planned;
}

/* A method that only the settings name has no rule for the names of its parts. */
static bool has_known_names(const heft_quantised_part *part)
{
    return !heft_str_is(heft_lit(part->role), "data");
}

static heft_status check_names(const torn_check *c, uint32_t i)
{
    const heft_quantised q = heft_schemes_at(c->before, i);
    for (uint32_t k = 0; c->after && k < q.part_count; k++) {
        heft_quantised_part part = heft_schemes_part_at(c->before, i, k);
        if (is_needed(&part) && has_known_names(&part) &&
            heft_schemes_find(c->after, planned_id(c, part.tensor)) == HEFT_NONE)
            return warn(c, &q, &part, "has a new name that does not belong to it");
    }
    return HEFT_OK;
}

static heft_status check(const torn_check *c, uint32_t i)
{
    const heft_quantised q = heft_schemes_at(c->before, i);
    heft_quantised_part missing;
    uint32_t planned = count_planned(&missing, c, i);
    if (!planned)
        return HEFT_OK;
    return missing.role ? warn(c, &q, &missing, "is left out: the other parts mean nothing alone")
                        : check_names(c, i);
}

/* Return true if a tensor has another name in the plan. */
static bool has_renamed(const torn_check *c)
{
    for (uint32_t t = 0; t < heft_ix_tensors(&c->in->x); t++) {
        uint32_t id = planned_id(c, t);
        if (id != HEFT_NONE && !heft_str_eq(heft_ix_name(&c->in->x, t), heft_ix_name(&c->p->x, id)))
            return true;
    }
    return false;
}

heft_status heft_warn_torn(heft_planner *p, const heft_file *in, const heft_schemes *schemes,
                           const uint32_t *planned)
{
    torn_check c = { .p = p, .in = in, .before = schemes, .planned = planned };
    heft_status st = schemes ? HEFT_OK : heft_schemes_of_file(&c.before, in, p->plan.err);
    if (st || !heft_schemes_count(c.before))
        return st;
    if (has_renamed(&c))
        st = heft_schemes_of_index(&c.after, &p->x, p->host->allocator, NULL, NULL, p->plan.err);
    for (uint32_t i = 0; i < heft_schemes_count(c.before) && !st; i++)
        st = check(&c, i);
    heft_schemes_close(c.after);
    return st;
}

bool heft_is_metadata_value(const heft_value *v)
{
    const heft_dtype_info *d = v->kind == HEFT_KIND_ARRAY ? heft_dtype_get(v->as.array.dtype)
                                                          : NULL;
    if (v->kind > HEFT_KIND_MAP || !heft_value_is_text(v))
        return false;
    if (v->kind == HEFT_KIND_ID128)
        return v->as.s.len == 16;
    return v->kind != HEFT_KIND_ARRAY ||
           (d && d->block_elems == 1 && !heft_dtype_is_complex(v->as.array.dtype));
}

static bool is_scalar(const heft_value *v)
{
    return v->kind != HEFT_KIND_ARRAY && !heft_value_nests(v) && !v->key.len &&
           heft_value_is_text(v);
}

/* at: the index of the list among `count` values. */
static bool is_list_of_scalars(const heft_value *list, size_t at, size_t count)
{
    uint64_t end = list->as.container.end;
    bool is = list->kind == HEFT_KIND_LIST && end > at && end <= count &&
              end - at - 1 == list->as.container.count;
    for (size_t k = 1; is && k < end - at; k++)
        is = is_scalar(&list[k]);
    return is;
}

heft_status heft_set_check(const heft_value *set, size_t count, heft_error *err)
{
    for (size_t i = 0; i < count; i = heft_set_next(set, i)) {
        bool is_text = heft_value_is_text(&set[i]);
        if (is_text && heft_value_nests(&set[i]) && !is_list_of_scalars(&set[i], i, count))
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "metadata %q: maps, and lists of anything but scalars, cannot "
                                    "be set",
                                    set[i].key);
        if (!is_text)
            return heft_error_plain(err, HEFT_E_ARGUMENT, "metadata %q: its text is not UTF-8",
                                    set[i].key);
    }
    return HEFT_OK;
}

heft_status heft_set_add(heft_index *x, const heft_value *set, size_t i, heft_value first)
{
    size_t end = heft_set_next(set, i);
    bool is_list = heft_value_nests(&first);
    HEFT_TRY(heft_ix_meta(x, first));
    for (size_t k = i + 1; is_list && k < end; k++)
        HEFT_TRY(heft_ix_meta(x, set[k]));
    if (is_list)
        heft_ix_meta_end(x);
    return HEFT_OK;
}

/* Attributes that repeat the identity, in files that store identities as ordinary attributes. */
static bool is_identity(heft_str key)
{
    return heft_str_is(key, "burn.param_id") || heft_str_is(key, "gptrs.base_id") ||
           heft_str_is(key, "gptrs.requires_grad");
}

heft_status heft_copy_attributes(heft_planner *p, const heft_index *from, uint32_t id,
                                 uint32_t source, bool cast, const heft_identity *identity)
{
    const heft_ix_tensor_row *row = heft_ix_row(from, source);
    const heft_ix_attr_row *attrs = from->attrs.ptr;
    heft_identity own = heft_ix_identity(from, source);
    heft_status st = heft_ix_identify(&p->x, id, identity ? identity : &own);
    if (cast)
        return st;
    uint32_t k = row->attrs ? row->attrs - 1 : from->attrs.len;
    while (k < from->attrs.len && attrs[k].tensor == source && !st) {
        const heft_value *v = &attrs[k].value;
        uint32_t next = heft_value_next(v, k);
        if (!identity || !is_identity(v->key))
            st = heft_ix_copy_value(&p->x, from, k, id);
        k = next;
    }
    return st;
}
