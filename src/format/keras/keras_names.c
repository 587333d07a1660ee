/* keras_names.c - the names of the tensors.
 *
 * The path of an array in the file is its name, as in Keras 3.  Keras 2 calls its weights by the
 * names in the attribute weight_names of their group, and shows them without the group. */
#include "format/keras/keras.h"

#include "model/names.h"

static heft_str path_of(const void *ctx, uint32_t i)
{
    return ((const heft_keras *)ctx)->c->arrays[i].name;
}

static heft_str name_of(const void *ctx, uint32_t i)
{
    return ((const heft_keras *)ctx)->names[i];
}

static bool is_weight_name(const heft_container_attribute *a)
{
    return a->value.kind == HEFT_KIND_STR && heft_str_begins(a->value.key, "weight_names");
}

static const heft_container_attribute *group_attribute(const heft_keras *k, uint32_t i)
{
    return &k->c->attributes[k->c->attribute_count - k->c->group_attributes + i];
}

/* Give each array that a group names the name in the group. */
static heft_status use_names(heft_keras *k, const heft_names *paths)
{
    heft_names_of of = { path_of, k };
    for (uint32_t i = 0; i < k->c->group_attributes; i++) {
        const heft_container_attribute *a = group_attribute(k, i);
        if (!is_weight_name(a) || !a->owner.len)
            continue;
        heft_str path = heft_arena_join(&k->x->arena, a->owner, heft_lit("/"), a->value.as.s);
        if (!path.ptr)
            return heft_ix_no_memory(k->x);
        uint32_t found = heft_names_find(paths, of, heft_names_hash(&k->x->key, path), path);
        if (found != HEFT_NONE && a->value.as.s.len)
            k->names[found] = a->value.as.s;
    }
    return HEFT_OK;
}

/* Two layers may call their weights alike: all but the first are called by their paths. */
static void tell_apart(heft_keras *k, heft_names *names)
{
    heft_names_of of = { name_of, k };
    for (uint32_t i = 0; i < k->c->array_count; i++)
        if (heft_names_add(names, of, heft_names_hash(&k->x->key, k->names[i]), k->names[i], i) !=
            HEFT_NONE)
            k->names[i] = k->c->arrays[i].name;
}

static heft_status rename_tensors(heft_keras *k)
{
    heft_memory *m = &k->x->mem;
    heft_names paths = { .count = 0 }, names = { .count = 0 };
    heft_names_of of = { path_of, k };
    bool ok = heft_names_reserve(m, &paths, k->c->array_count) &&
              heft_names_reserve(m, &names, k->c->array_count);
    for (uint32_t i = 0; ok && i < k->c->array_count; i++)
        (void)heft_names_add(&paths, of, heft_names_hash(&k->x->key, path_of(k, i)), path_of(k, i),
                             i);
    heft_status st = ok ? use_names(k, &paths) : heft_ix_no_memory(k->x);
    if (!st)
        tell_apart(k, &names);
    heft_names_free(m, &paths);
    heft_names_free(m, &names);
    return st;
}

heft_status heft_keras_name(heft_keras *k)
{
    bool has_names = false;
    k->names = heft_arena_alloc(&k->x->arena, (k->c->array_count + (size_t)1) * sizeof *k->names,
                                sizeof(void *));
    if (!k->names)
        return heft_ix_no_memory(k->x);
    for (uint32_t i = 0; i < k->c->array_count; i++)
        k->names[i] = k->c->arrays[i].name;
    for (uint32_t i = 0; i < k->c->group_attributes && !has_names; i++)
        has_names = is_weight_name(group_attribute(k, i));
    return has_names ? rename_tensors(k) : HEFT_OK;
}
