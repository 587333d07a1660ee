/* attribute_metadata.c - converts tensor attributes to text metadata and back. */

#include "format/losses.h"
#include "grammar/json.h"

typedef enum attribute { PARAM_ID, REQUIRES_GRAD, STORED_DTYPE, ATTRIBUTES } attribute;

static const char *const keys[ATTRIBUTES] = {
    [PARAM_ID] = "heft.burn.param_id/",
    [REQUIRES_GRAD] = "heft.gptrs.requires_grad/",
    [STORED_DTYPE] = "heft.stored_dtype/",
};

/* ---- writing ---- */

static heft_status add_entry(heft_plan *p, attribute a, uint32_t tensor, heft_str text)
{
    heft_str name = heft_ix_name(p->x, tensor);
    heft_value v = { .kind = HEFT_KIND_STR };
    v.key = heft_arena_join(p->arena, heft_lit(keys[a]), name, heft_lit(""));
    v.as.s = heft_arena_copy(p->arena, text);
    if (!v.key.ptr || !v.as.s.ptr)
        return heft_error_no_memory(p->err, "for attributes");
    return heft_ix_meta(p->x, v);
}

heft_status heft_attributes_to_metadata(heft_plan *p)
{
    char digits[20];
    heft_status st = HEFT_OK;
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++) {
        const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
        if (row->flags & HEFT_T_PARAM_ID) {
            size_t n = heft_u64_text(digits, ((const uint64_t *)p->x->param_ids.ptr)[t]);
            st = add_entry(p, PARAM_ID, t, (heft_str){ digits, n });
        }
        if (!st && row->flags & HEFT_T_GRAD)
            st = add_entry(p, REQUIRES_GRAD, t, heft_lit("true"));
        /* An opaque tensor's record states the stored type. */
        bool has = row->attrs && row->layout == HEFT_DENSE;
        heft_str type = has && !st ? heft_ix_stored_dtype(p->x, t) : (heft_str){ NULL, 0 };
        if (type.ptr)
            st = add_entry(p, STORED_DTYPE, t, type);
    }
    return st;
}

static bool is_stored_dtype(const heft_value *v)
{
    return v->kind == HEFT_KIND_STR && heft_str_is(v->key, "stored_dtype");
}

heft_status heft_loss_attributes_beyond_metadata(heft_plan *p, const char *rule)
{
    return heft_loss_attributes_except(p, rule, HEFT_T_PARAM_ID | HEFT_T_GRAD, is_stored_dtype);
}

/* ---- reading ---- */

static attribute attribute_of(heft_str key, heft_str *name)
{
    for (attribute a = 0; a < ATTRIBUTES; a++) {
        size_t len = heft_lit(keys[a]).len;
        if (heft_str_begins(key, keys[a])) {
            *name = (heft_str){ key.ptr + len, key.len - len };
            return a;
        }
    }
    return ATTRIBUTES;
}

/* An entry with an invalid value is not taken, and stays ordinary metadata. */
static heft_status restore(heft_index *x, attribute a, uint32_t tensor, heft_str text, bool *taken)
{
    heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    uint64_t id;
    *taken = true;
    if (a == PARAM_ID && heft_json_u64(&id, text))
        return heft_ix_param_id(x, tensor, id);
    if (a == STORED_DTYPE && !row->attrs)
        return heft_ix_attr_text(x, tensor, heft_lit("stored_dtype"), text);
    if (a == REQUIRES_GRAD && heft_str_is(text, "true"))
        row->flags |= HEFT_T_GRAD_KNOWN | HEFT_T_GRAD;
    else
        *taken = false;
    return HEFT_OK;
}

heft_status heft_attributes_from_metadata(heft_index *x)
{
    uint32_t used = 0, next = 0;
    heft_str name;
    bool has = false;
    for (uint32_t i = 0; !has && i < x->values.len; i = heft_ix_value_next(x, i))
        has = attribute_of(heft_ix_value(x, i)->key, &name) < ATTRIBUTES;
    heft_status st = has ? heft_ix_build_name_table(x) : HEFT_OK;
    if (st || !x->has_name_table)
        return st;
    for (uint32_t i = 0; i < x->values.len && !st; i++) {
        heft_value v = *heft_ix_value(x, i);
        bool is_entry = i == next && v.kind == HEFT_KIND_STR, taken = false;
        attribute a = is_entry ? attribute_of(v.key, &name) : ATTRIBUTES;
        uint32_t tensor = a < ATTRIBUTES ? heft_ix_find(x, name) : HEFT_NONE;
        next = i == next ? heft_ix_value_next(x, i) : next;
        if (heft_value_nests(&v))
            v.as.container.end -= i - used; /* entries removed before the container */
        if (tensor != HEFT_NONE)
            st = restore(x, a, tensor, v.as.s, &taken);
        if (!taken)
            *heft_ix_value(x, used++) = v;
    }
    x->values.len = used;
    return st;
}
