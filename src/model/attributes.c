/* attributes.c - attributes of a tensor: stored values, and values kept in columns and flags. */
#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"
#include "model/dtype.h"
#include "model/index.h"

static const struct {
    const char *name, *text;
} rules[] = {
    [HEFT_ANY_VALUE] = { "", "" },
    [HEFT_BOOL_VALUE] = { "heft/bool-value", "a boolean is neither 0 nor 1" },
    [HEFT_HALF_BYTE] = { "heft/half-byte", "the unused half byte after the last element is not 0" },
};

heft_value_rule heft_value_rule_of(const heft_index *x, uint32_t part)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(x, part);
    uint32_t t = p->dtype == HEFT_F4_E2M1 && p->length ? heft_ix_owner(x, part) : HEFT_NONE;
    uint64_t n;
    if (p->dtype == HEFT_BOOL && p->length)
        return HEFT_BOOL_VALUE;
    if (t == HEFT_NONE || heft_ix_row(x, t)->layout != HEFT_DENSE)
        return HEFT_ANY_VALUE;
    bool is_odd = heft_product(&n, heft_ix_dims(x, t), heft_ix_row(x, t)->rank) && n & 1;
    return is_odd ? HEFT_HALF_BYTE : HEFT_ANY_VALUE;
}

static size_t first_above_one(const uint8_t *p, size_t len)
{
    size_t i = 0;
    for (; i + 64 <= len; i += 64) {
        uint8_t any = 0;
        for (size_t k = 0; k < 64; k++)
            any |= p[i + k];
        if (any > 1)
            break;
    }
    while (i < len && p[i] <= 1)
        i++;
    return i;
}

size_t heft_value_rule_broken_at(heft_value_rule rule, const uint8_t *p, size_t len, bool is_end)
{
    if (rule == HEFT_BOOL_VALUE)
        return first_above_one(p, len);
    return rule == HEFT_HALF_BYTE && is_end && len && p[len - 1] >> 4 ? len - 1 : len;
}

const char *heft_value_rule_name(heft_value_rule rule)
{
    return rules[rule].name;
}

const char *heft_value_rule_text(heft_value_rule rule)
{
    return rules[rule].text;
}

const uint8_t *heft_ix_base_id_at(const heft_index *x, uint32_t tensor)
{
    if (!(heft_ix_row(x, tensor)->flags & HEFT_T_BASE_ID))
        return NULL;
    return (const uint8_t *)x->base_ids.ptr + 16ull * tensor;
}

heft_identity heft_ix_identity(const heft_index *x, uint32_t tensor)
{
    uint8_t flags = heft_ix_row(x, tensor)->flags;
    heft_identity id = { .has = 0 };
    if (flags & HEFT_T_GRAD_KNOWN) {
        id.has |= HEFT_HAS_REQUIRES_GRAD;
        id.requires_grad = flags & HEFT_T_GRAD;
    }
    if (flags & HEFT_T_PARAM_ID) {
        id.has |= HEFT_HAS_PARAM_ID;
        id.param_id = ((const uint64_t *)x->param_ids.ptr)[tensor];
    }
    return id;
}

heft_status heft_identity_check(const heft_identity *id, heft_str tensor, heft_error *err)
{
    const uint32_t known = HEFT_HAS_PARAM_ID | HEFT_HAS_BASE_ID | HEFT_HAS_REQUIRES_GRAD;
    return id->has & ~known
               ? heft_error_plain(err, HEFT_E_ARGUMENT,
                                  "tensor %q: its identity has flags unknown to this version",
                                  tensor)
               : HEFT_OK;
}

heft_status heft_ix_identify(heft_index *x, uint32_t tensor, const heft_identity *id)
{
    if (id->has & HEFT_HAS_REQUIRES_GRAD)
        heft_ix_row(x, tensor)->flags |= (uint8_t)(HEFT_T_GRAD_KNOWN |
                                                   (id->requires_grad ? HEFT_T_GRAD : 0));
    if (id->has & HEFT_HAS_PARAM_ID)
        HEFT_TRY(heft_ix_param_id(x, tensor, id->param_id));
    if (id->has & HEFT_HAS_BASE_ID)
        HEFT_TRY(heft_ix_base_id(x, tensor, id->base_id.bytes));
    return HEFT_OK;
}

/* Return the attribute that the index keeps in a column, or in flags, for the bit `flag`. */
static heft_value column_attribute(const heft_index *x, uint32_t tensor, uint8_t flag)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    heft_value v = { .kind = HEFT_KIND_NULL };
    if (flag == HEFT_T_BASE_ID) {
        v = (heft_value){ .kind = HEFT_KIND_ID128, .key = heft_lit("gptrs.base_id") };
        v.as.s = (heft_str){ (const char *)heft_ix_base_id_at(x, tensor), 16 };
    } else if (flag == HEFT_T_GRAD_KNOWN) {
        v = (heft_value){ .kind = HEFT_KIND_BOOL, .key = heft_lit("gptrs.requires_grad") };
        v.as.b = row->flags & HEFT_T_GRAD;
    } else if (flag == HEFT_T_PARAM_ID) {
        v = (heft_value){ .kind = HEFT_KIND_UINT, .key = heft_lit("burn.param_id") };
        v.as.u = ((const uint64_t *)x->param_ids.ptr)[tensor];
    } else {
        v = (heft_value){ .kind = HEFT_KIND_UINT, .key = heft_lit("embd.name_hash") };
        v.as.u = heft_str_fnv1a(heft_ix_name(x, tensor));
    }
    return v;
}

bool heft_ix_attribute(heft_value *out, const heft_index *x, uint32_t tensor, uint32_t i)
{
    static const uint8_t columns[] = { HEFT_T_BASE_ID, HEFT_T_GRAD_KNOWN, HEFT_T_PARAM_ID,
                                       HEFT_T_NAME_HASH };
    const heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    uint32_t column_count = 0;
    for (size_t k = 0; k < sizeof columns; k++) {
        if (!(row->flags & columns[k]))
            continue;
        if (column_count++ == i) {
            *out = column_attribute(x, tensor, columns[k]);
            return true;
        }
    }
    i -= column_count;
    if (!row->attrs || i >= x->attrs.len - (row->attrs - 1))
        return false;
    const heft_ix_attr_row *a = (const heft_ix_attr_row *)x->attrs.ptr + (row->attrs - 1) + i;
    *out = a->value;
    if (heft_value_nests(out))
        out->as.container.end = out->as.container.end - (row->attrs - 1) + column_count;
    return a->tensor == tensor;
}

bool heft_ix_find_attribute(heft_value *out, const heft_index *x, uint32_t tensor, const char *key)
{
    for (uint32_t i = 0; heft_ix_attribute(out, x, tensor, i); i = heft_value_next(out, i))
        if (heft_str_is(out->key, key))
            return true;
    return false;
}

heft_str heft_ix_stored_dtype(const heft_index *x, uint32_t tensor)
{
    heft_value v;
    return heft_ix_find_attribute(&v, x, tensor, "stored_dtype") && v.kind == HEFT_KIND_STR
               ? v.as.s
               : (heft_str){ NULL, 0 };
}
