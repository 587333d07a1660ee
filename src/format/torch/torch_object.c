/* torch_object.c - how containers and objects of a pickle hold their items: keys as text, sizes,
 * and the attributes of an object. */
#include "format/torch/torch.h"
#include "model/values.h"

heft_str heft_torch_key_text(const heft_pickle *p, uint32_t key, uint32_t index,
                             char buf[HEFT_F64_TEXT])
{
    heft_value v = { .kind = HEFT_KIND_UINT };
    const heft_pickle_value *k = key == HEFT_NONE ? NULL : heft_pickle_at(p, key);
    if (k && (k->kind == HEFT_PICKLE_TEXT || k->kind == HEFT_PICKLE_DECIMAL))
        return k->as.s;
    if (k && k->kind == HEFT_PICKLE_BOOL)
        return heft_lit(k->as.b ? "True" : "False");
    if (k && k->kind == HEFT_PICKLE_NONE)
        return heft_lit("None");
    v.as.u = index;
    if (k && k->kind == HEFT_PICKLE_INT) {
        v.kind = HEFT_KIND_INT;
        v.as.i = k->as.i;
    } else if (k && k->kind == HEFT_PICKLE_FLOAT) {
        v.kind = HEFT_KIND_FLOAT;
        v.as.f = k->as.f;
    }
    heft_str text = { "", 0 };
    heft_value_text(&text, &v, buf);
    return text;
}

bool heft_torch_is_container(const heft_pickle *p, uint32_t value)
{
    uint8_t kind = heft_pickle_at(p, value)->kind;
    return kind == HEFT_PICKLE_TUPLE || kind == HEFT_PICKLE_LIST || kind == HEFT_PICKLE_DICT ||
           kind == HEFT_PICKLE_SET;
}

bool heft_torch_is(const heft_pickle *p, uint32_t value, const char *class_name)
{
    uint32_t class = heft_pickle_is(p, value, HEFT_PICKLE_OBJECT)
                         ? heft_pickle_at(p, value)->as.object.callable
                         : HEFT_NONE;
    return heft_pickle_is(p, class, HEFT_PICKLE_GLOBAL) &&
           heft_str_is(heft_pickle_name(p, class), class_name);
}

uint32_t heft_torch_fields(const heft_pickle *p, uint32_t value)
{
    enum { MAX_FIELDS = 128 }; /* fields that many instances share are searched for each */
    uint32_t state = heft_pickle_is(p, value, HEFT_PICKLE_OBJECT)
                         ? heft_pickle_at(p, value)->as.object.state
                         : HEFT_NONE;
    if (heft_pickle_is(p, state, HEFT_PICKLE_TUPLE))
        state = heft_pickle_item(p, state, 1);
    bool is_small = heft_pickle_is(p, state, HEFT_PICKLE_DICT) &&
                    heft_pickle_at(p, state)->as.items.count <= 2 * MAX_FIELDS;
    return is_small ? state : HEFT_NONE;
}

uint32_t heft_torch_field(const heft_pickle *p, uint32_t value, const char *name)
{
    uint32_t found = heft_pickle_dict_get(p, heft_torch_fields(p, value), name);
    return heft_pickle_is(p, found, HEFT_PICKLE_NONE) ? HEFT_NONE : found;
}

bool heft_torch_sizes(heft_torch *t, uint32_t *value, uint32_t *count)
{
    const heft_pickle *p = &t->p;
    uint64_t n;
    if (*value == HEFT_NONE)
        return false;
    *value = heft_torch_interpret(t, *value).value;
    if (!heft_pickle_is(p, *value, HEFT_PICKLE_TUPLE))
        return false;
    *count = heft_pickle_at(p, *value)->as.items.count;
    t->st = heft_torch_charge(t, *count, heft_pickle_offset(p, *value));
    for (uint32_t i = 0; i < *count && !t->st; i++)
        if (!heft_pickle_u64(&n, p, heft_pickle_item(p, *value, i)))
            return false;
    return !t->st;
}

bool heft_torch_find_attributes(const heft_torch *t, uint32_t state, uint32_t dicts[2])
{
    const heft_pickle *p = &t->p;
    dicts[0] = state == HEFT_NONE ? state : heft_torch_interpret(t, state).value;
    dicts[1] = HEFT_NONE;
    if (state == HEFT_NONE || heft_pickle_is(p, dicts[0], HEFT_PICKLE_DICT))
        return true;
    if (!heft_pickle_is(p, dicts[0], HEFT_PICKLE_TUPLE))
        return false;
    state = dicts[0];
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t part = heft_pickle_item(p, state, i);
        bool is_none = part == HEFT_NONE || heft_pickle_is(p, part, HEFT_PICKLE_NONE);
        if (!is_none && !heft_pickle_is(p, part, HEFT_PICKLE_DICT))
            return false;
        dicts[i] = is_none ? HEFT_NONE : part;
    }
    return heft_pickle_item(p, state, 2) == HEFT_NONE;
}

uint32_t heft_torch_attributes(const heft_torch *t, uint32_t object)
{
    uint32_t dicts[2];
    bool has = heft_torch_find_attributes(t, heft_pickle_at(&t->p, object)->as.object.state, dicts);
    return has ? dicts[dicts[0] == HEFT_NONE] : HEFT_NONE;
}
