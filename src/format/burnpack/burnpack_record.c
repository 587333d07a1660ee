/* burnpack_record.c - the record of an optimizer, as Burn 0.22 writes it: a Burnpack with tensors "ID.FIELD", each of which has
 * the param_id that its name begins with, with scalars of such names, of which "ID.__rank" tells for how many dimensions
 * the parameter's state is, and with the parameter's path in the model as the metadata "ID". */
#include "format/burnpack/burnpack.h"
#include "format/losses.h"
#include "grammar/json.h"

/* The id and the rest of "ID.REST". */
static bool split_name(uint64_t *id, heft_str *rest, heft_str name)
{
    size_t dot = 0;
    while (dot < name.len && name.ptr[dot] != '.')
        dot++;
    if (dot + 1 >= name.len)
        return false;
    *rest = (heft_str){ name.ptr + dot + 1, name.len - dot - 1 };
    return heft_json_u64(id, (heft_str){ name.ptr, dot });
}

static bool has_rank(const heft_index *x, uint32_t map)
{
    uint64_t id;
    heft_str rest;
    bool has = false;
    for (uint32_t i = map + 1; i < heft_ix_value_next(x, map) && !has; i = heft_ix_value_next(x, i))
        has = split_name(&id, &rest, heft_ix_value(x, i)->key) && heft_str_is(rest, "__rank");
    return has;
}

bool heft_burnpack_is_optimizer(const heft_index *x)
{
    bool is = false;
    for (uint32_t i = 0; i < x->values.len && !is; i = heft_ix_value_next(x, i)) {
        const heft_value *v = heft_ix_value(x, i);
        is = v->kind == HEFT_KIND_MAP && heft_str_is(v->key, heft_burnpack_scalars) &&
             has_rank(x, i);
    }
    return is;
}

void heft_burnpack_check_record(heft_check *c)
{
    const uint64_t *ids = c->x->param_ids.ptr;
    if (!heft_burnpack_is_optimizer(c->x))
        return;
    for (uint32_t t = 0; t < heft_ix_tensors(c->x); t++) {
        heft_range nowhere = { HEFT_NOWHERE, 0 };
        heft_str rest;
        uint64_t id;
        if (!(heft_ix_row(c->x, t)->flags & HEFT_T_PARAM_ID))
            c->report(c, HEFT_WARNING, "burnpack/record-id", nowhere, t,
                      "it has no param_id, without which Burn does not load an optimizer's record");
        else if (!split_name(&id, &rest, heft_ix_name(c->x, t)) || id != ids[t])
            c->report(c, HEFT_WARNING, "burnpack/record-id", nowhere, t,
                      "its name does not begin with its param_id: Burn does not find it in an "
                      "optimizer's record");
    }
}

heft_status heft_burnpack_derive_id(heft_plan *p, uint32_t tensor)
{
    heft_str rest;
    uint64_t id;
    if (!split_name(&id, &rest, heft_ix_name(p->x, tensor)))
        return HEFT_OK;
    heft_status st = heft_ix_param_id(p->x, tensor, id);
    return st ? st
              : heft_plan_loss(p, HEFT_NOTE, "burnpack/record-id", tensor,
                               "it gets the param_id that its name begins with, as Burn wants it "
                               "in an optimizer's record");
}
