/* edit_request.c - the changes that an edit requests. */
#include "core/edit/edit.h"

#include "core/write/plan/plan.h"

heft_str heft_edit_name(const heft_edit_job *g, uint32_t t)
{
    return g->names && g->names[t].ptr ? g->names[t] : heft_ix_name(&g->in->x, t);
}

heft_identity heft_edit_identity(const heft_edit_job *g, uint32_t t)
{
    return g->identities ? g->identities[t] : heft_ix_identity(&g->in->x, t);
}

bool heft_edit_has_new_vocab(const heft_edit_job *g)
{
    return g->opt.vocab || g->opt.special_count;
}

bool heft_edit_sets(const heft_edit_job *g, heft_str key)
{
    size_t i = 0;
    while (i < g->opt.set_count && !heft_str_eq(g->opt.set[i].key, key))
        i = heft_set_next(g->opt.set, i);
    return i < g->opt.set_count;
}

bool heft_edit_unsets(const heft_edit_job *g, heft_str key)
{
    size_t i = 0;
    while (i < g->opt.unset_count && !heft_str_eq(g->opt.unset[i], key))
        i++;
    return i < g->opt.unset_count;
}

bool heft_edit_replaces_part(const heft_edit_job *g, heft_str role)
{
    return (g->vocab && heft_str_is(role, "vocab")) ||
           (g->opt.config.ptr && heft_str_is(role, "config"));
}

static const heft_value *find_in(const heft_index *x, uint32_t i, uint32_t end, heft_str key)
{
    for (; i < end; i = heft_ix_value_next(x, i))
        if (heft_str_eq(heft_ix_value(x, i)->key, key))
            return heft_ix_value(x, i);
    return NULL;
}

const heft_value *heft_edit_find(const heft_index *x, const heft_format *f, heft_str key)
{
    const heft_value *v = find_in(x, 0, x->values.len, key);
    heft_str name;
    if (v || !heft_is_in_number_map(f, key, &name))
        return v;
    v = find_in(x, 0, x->values.len, heft_lit(f->number_map));
    if (!v || v->kind != HEFT_KIND_MAP)
        return NULL;
    return find_in(x, (uint32_t)(v - heft_ix_value(x, 0)) + 1, v->as.container.end, name);
}

bool heft_edit_changes_map(const heft_edit_job *g, heft_str map)
{
    const heft_format *f = g->in->format;
    heft_str name;
    bool changes = false;
    if (!f->number_map || !heft_str_is(map, f->number_map))
        return false;
    for (size_t i = 0; i < g->opt.set_count && !changes; i = heft_set_next(g->opt.set, i))
        changes = heft_is_map_number(f, &g->opt.set[i], &name);
    for (size_t i = 0; i < g->opt.unset_count && !changes; i++)
        changes = heft_is_in_number_map(f, g->opt.unset[i], &name);
    return changes;
}

static heft_status check_value(const heft_edit_job *g, const heft_value *v)
{
    if (heft_edit_unsets(g, v->key))
        return heft_error_plain(g->err, HEFT_E_ARGUMENT, "metadata %q: both set and unset", v->key);
    return heft_check_map_number(g->in->format, v, g->err);
}

heft_status heft_edit_check_request(const heft_edit_job *g)
{
    heft_status st = HEFT_OK;
    for (size_t i = 0; i < g->opt.special_count; i++)
        if ((unsigned)g->opt.special[i].special >= HEFT_SPECIALS)
            return heft_error_plain(g->err, HEFT_E_ARGUMENT, "there is no special token %U",
                                    (uint64_t)g->opt.special[i].special);
    if (heft_edit_has_new_vocab(g) && !(g->in->format->caps & HEFT_CAN_VOCAB))
        return heft_error_plain(g->err, HEFT_E_UNSUPPORTED, "%s cannot store a vocabulary",
                                g->in->format->name);
    if (!st)
        st = heft_set_check(g->opt.set, g->opt.set_count, g->err);
    for (size_t i = 0; i < g->opt.set_count && !st; i = heft_set_next(g->opt.set, i))
        st = check_value(g, &g->opt.set[i]);
    for (size_t i = 0; i < g->opt.unset_count && !st; i++)
        if (!heft_edit_find(&g->in->x, g->in->format, g->opt.unset[i]))
            st = heft_error_rule(g->err,
                                 heft_error_plain(g->err, HEFT_E_NOTFOUND,
                                                  "there is no metadata %q", g->opt.unset[i]),
                                 "heft/no-metadata");
    return st;
}
