/* mix_rules.c - what a mix of --quantize and the casts of --cast make of a tensor. */
#include "models/model.h"
#include "options/rules.h"

static heft_mix_item mix_item(const rules *r, const heft_tensor *t)
{
    return heft_mix_at(r->mix, heft_tensor_find(r->mixed, t->name));
}

heft_dtype rules_mix_type(const rules *r, const heft_tensor *t)
{
    return mix_item(r, t).to;
}

heft_mix_item rules_mix_item(rules *r, uint32_t tensor)
{
    heft_tensor t = heft_tensor_at(r->mixed, tensor);
    heft_mix_item item = heft_mix_at(r->mix, tensor);
    heft_dtype to = cast_rules_find(&r->no_memory, &r->cast, &t);
    const heft_dtype_info *type = heft_dtype_get(to);
    if (!to)
        return item;
    item.to = to;
    item.instead_of = HEFT_UNTYPED;
    item.reason = to == item.from ? item.reason : "--cast";
    item.new_bytes = tensor_elements(&t) / type->block_elems * type->block_bytes;
    return item;
}

const float *rules_mix_importance(void *ctx, const heft_tensor *t, uint64_t *count)
{
    const rules *r = ctx;
    heft_mix_item item = mix_item(r, t);
    *count = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        *count *= i + 2 != t->rank ? t->dims[i] : 1;
    return item.importance;
}
