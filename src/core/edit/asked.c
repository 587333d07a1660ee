/* asked.c - what an edit was asked for. */
#include "core/edit/edit.h"

heft_str heft_edit_name(const heft_editing *g, uint32_t t)
{
    return g->names && g->names[t].ptr ? g->names[t] : heft_ix_name(&g->in->x, t);
}

heft_identity heft_edit_identity(const heft_editing *g, uint32_t t)
{
    return g->identities ? g->identities[t] : heft_ix_identity(&g->in->x, t);
}

bool heft_edit_sets(const heft_editing *g, heft_str key)
{
    size_t i = 0;
    while (i < g->opt.set_count && !heft_str_eq(g->opt.set[i].key, key))
        i++;
    return i < g->opt.set_count;
}

bool heft_edit_unsets(const heft_editing *g, heft_str key)
{
    size_t i = 0;
    while (i < g->opt.unset_count && !heft_str_eq(g->opt.unset[i], key))
        i++;
    return i < g->opt.unset_count;
}

bool heft_edit_writes(const heft_format *f, heft_str version)
{
    bool found = false;
    for (const char *p = f->versions; *p && !found;) {
        size_t len = 0;
        while (p[len] && p[len] != ' ')
            len++;
        found = heft_str_eq((heft_str){ p, len }, version);
        p += len + (p[len] == ' ');
    }
    return found;
}

bool heft_edit_has(const heft_index *x, heft_str key)
{
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i))
        if (heft_str_eq(heft_ix_value(x, i)->key, key))
            return true;
    return false;
}

static heft_status check_value(const heft_editing *g, const heft_value *v)
{
    if (heft_value_nests(v))
        return heft_error_plain(g->err, HEFT_E_ARGUMENT, "metadata %q: lists and maps are not set",
                                v->key);
    if (!heft_value_is_text(v))
        return heft_error_plain(g->err, HEFT_E_ARGUMENT, "metadata %q: its text is not UTF-8",
                                v->key);
    if (heft_edit_unsets(g, v->key))
        return heft_error_plain(g->err, HEFT_E_ARGUMENT, "metadata %q: both set and taken away",
                                v->key);
    return HEFT_OK;
}

heft_status heft_edit_check_asked(const heft_editing *g)
{
    heft_status st = HEFT_OK;
    for (size_t i = 0; i < g->opt.set_count && !st; i++)
        st = check_value(g, &g->opt.set[i]);
    for (size_t i = 0; i < g->opt.unset_count && !st; i++)
        if (!heft_edit_has(&g->in->x, g->opt.unset[i]))
            st = heft_error_plain(g->err, HEFT_E_NOTFOUND, "there is no metadata %q",
                                  g->opt.unset[i]);
    return st;
}
