/* text_set.c - a set of strings on a name table, rebuilt whenever the set has doubled. */
#include "core/write/plan/plan.h"

static heft_str text_at(const void *ctx, uint32_t i)
{
    return ((const heft_str *)((const heft_text_set *)ctx)->texts.ptr)[i];
}

bool heft_text_set_has(const heft_text_set *s, const heft_name_hash *key, heft_str text)
{
    heft_names_of of = { text_at, s };
    return heft_names_find(&s->names, of, heft_names_hash(key, text), text) != HEFT_NONE;
}

bool heft_text_set_add(heft_text_set *s, heft_memory *m, const heft_name_hash *key, heft_str text)
{
    heft_names_of of = { text_at, s };
    heft_str *to = heft_names_grow(m, &s->names, key, of, s->texts.len)
                       ? heft_vec_push(m, &s->texts, sizeof *to)
                       : NULL;
    if (!to)
        return false;
    *to = text;
    heft_names_add(&s->names, of, heft_names_hash(key, text), text, s->texts.len - 1);
    return true;
}

void heft_text_set_free(heft_text_set *s, heft_memory *m)
{
    heft_names_free(m, &s->names);
    heft_vec_free(m, &s->texts, sizeof(heft_str));
}
