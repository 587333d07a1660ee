/* keras_facts.c - what Keras notes besides weights: attributes, versions, the class of a model. */
#include "format/keras/keras.h"

#include "grammar/json.h"

/* ---- attributes ---- */

/* Types of ml_dtypes, which HDF5 stores as bytes. */
static const struct {
    const char *name;
    heft_dtype dtype;
    uint32_t bytes;
} noted_types[] = {
    { "bfloat16", HEFT_BF16, 2 },
    { "float8_e4m3fn", HEFT_F8_E4M3FN, 1 },
    { "float8_e5m2", HEFT_F8_E5M2, 1 },
};

static bool is_type_note(const heft_container_attribute *a)
{
    return a->value.kind == HEFT_KIND_STR && heft_str_is(a->value.key, "dtype");
}

heft_dtype heft_keras_noted_type(const heft_keras *k, const heft_container_array *a)
{
    bool is_bytes = !a->dtype || a->dtype == HEFT_U16 || a->dtype == HEFT_U8;
    for (uint32_t i = 0; is_bytes && i < a->attribute_count; i++) {
        const heft_container_attribute *t = &k->c->attributes[a->first_attribute + i];
        for (size_t n = 0; is_type_note(t) && n < sizeof noted_types / sizeof *noted_types; n++)
            if (heft_str_is(t->value.as.s, noted_types[n].name) &&
                a->element_bytes == noted_types[n].bytes)
                return noted_types[n].dtype;
    }
    return HEFT_UNTYPED;
}

/* Add the value at *i, or the list that begins there: to the metadata, or to a tensor. */
static heft_status add_value(heft_keras *k, const heft_container_attribute *a, heft_str key,
                             uint32_t tensor)
{
    bool is_meta = tensor == HEFT_NONE, is_list = a->count > 1;
    heft_value v = a->value;
    v.key = key;
    if (is_list)
        v = (heft_value){ .kind = HEFT_KIND_LIST, .key = key };
    HEFT_TRY(is_meta ? heft_ix_meta(k->x, v) : heft_ix_attr(k->x, tensor, v));
    for (uint32_t n = 0; is_list && n < a->count; n++) {
        v = a[n].value;
        v.key = (heft_str){ "", 0 };
        HEFT_TRY(is_meta ? heft_ix_meta(k->x, v) : heft_ix_attr(k->x, tensor, v));
    }
    if (is_list && is_meta)
        heft_ix_meta_end(k->x);
    else if (is_list)
        heft_ix_attr_end(k->x);
    return HEFT_OK;
}

heft_status heft_keras_add_attributes(heft_keras *k, const heft_container_array *a, uint32_t tensor,
                                      bool has_type)
{
    const heft_container_attribute *all = &k->c->attributes[a->first_attribute];
    for (uint32_t i = 0; i < a->attribute_count; i += all[i].count ? all[i].count : 1)
        if (!has_type || !is_type_note(&all[i]))
            HEFT_TRY(add_value(k, &all[i], all[i].value.key, tensor));
    return HEFT_OK;
}

/* ---- attributes of groups ---- */

/* An attribute of a group is called PATH@NAME; the file and model_weights are the model. */
static heft_str key_of(heft_keras *k, const heft_container_attribute *a)
{
    if (!a->owner.len)
        return a->value.key;
    return heft_arena_join(&k->x->arena, a->owner, heft_lit("@"), a->value.key);
}

static heft_status add_group_attribute(heft_keras *k, const heft_container_attribute *a)
{
    bool is_text = a->value.kind == HEFT_KIND_STR && a->count == 1;
    bool is_model = !a->owner.len || heft_str_is(a->owner, "model_weights");
    if (heft_str_begins(a->value.key, "weight_names")) /* the names of the tensors */
        return HEFT_OK;
    heft_str key = key_of(k, a);
    if (!key.ptr)
        return heft_ix_no_memory(k->x);
    HEFT_TRY(add_value(k, a, key, HEFT_NONE));
    if (is_text && is_model && heft_str_is(a->value.key, "keras_version"))
        return heft_keras_add_version(k, a->value.as.s);
    return is_text && !a->owner.len && heft_str_is(a->value.key, "model_config")
               ? heft_keras_add_class(k, a->value.as.s)
               : HEFT_OK;
}

heft_status heft_keras_add_facts(heft_keras *k)
{
    const heft_container *c = k->c;
    uint32_t first = c->attribute_count - c->group_attributes;
    for (uint32_t i = first, n; i < c->attribute_count; i += n) {
        n = c->attributes[i].count ? c->attributes[i].count : 1;
        HEFT_TRY(add_group_attribute(k, &c->attributes[i]));
    }
    return HEFT_OK;
}

/* ---- texts in JSON ---- */

heft_status heft_keras_add_version(heft_keras *k, heft_str version)
{
    if (k->x->generator.len)
        return HEFT_OK;
    k->x->generator = heft_arena_join(&k->x->arena, heft_lit("Keras "), version,
                                      (heft_str){ "", 0 });
    return k->x->generator.ptr ? HEFT_OK : heft_ix_no_memory(k->x);
}

/* Call fn with each text of the object itself; a text that is not JSON ends it. */
static heft_status for_each_text(heft_keras *k, heft_str json,
                                 heft_status (*fn)(heft_keras *k, heft_str key, heft_str text))
{
    heft_error ignored;
    heft_str key = { "", 0 };
    heft_json j = heft_json_open(json, 0, HEFT_JSON_DEPTH, &k->x->arena, &ignored);
    heft_json_kind kind = heft_json_next(&j);
    if (kind != HEFT_JSON_OBJECT)
        return HEFT_OK;
    while ((kind = heft_json_next(&j)) == HEFT_JSON_KEY) {
        key = j.text;
        kind = heft_json_next(&j);
        if (kind == HEFT_JSON_STRING)
            HEFT_TRY(fn(k, key, j.text));
        else if (heft_json_skip(&j, kind))
            return HEFT_OK;
    }
    return HEFT_OK;
}

static heft_status take_class(heft_keras *k, heft_str key, heft_str text)
{
    return heft_str_is(key, "class_name")
               ? heft_ix_meta_text(k->x, heft_lit("keras.class_name"), text)
               : HEFT_OK;
}

heft_status heft_keras_add_class(heft_keras *k, heft_str json)
{
    return for_each_text(k, json, take_class);
}

static heft_status take_fact(heft_keras *k, heft_str key, heft_str text)
{
    heft_str name = heft_arena_join(&k->x->arena, heft_lit("keras."), key, (heft_str){ "", 0 });
    if (!name.ptr)
        return heft_ix_no_memory(k->x);
    HEFT_TRY(heft_ix_meta_text(k->x, name, text));
    return heft_str_is(key, "keras_version") ? heft_keras_add_version(k, text) : HEFT_OK;
}

heft_status heft_keras_add_metadata_json(heft_keras *k, heft_str json)
{
    return for_each_text(k, json, take_fact);
}
