/* burnpack_record.c - records of optimizers, as Burn 0.22 writes them in Burnpacks.
 *
 * ID is the param_id of a parameter of the model, in decimal.  A record contains for each
 * parameter:
 *   tensors "ID.FIELD" with the same param_id
 *   scalars "ID.FIELD"; "ID.__rank" is the number of dimensions of the state
 *   the metadata "ID", the path of the parameter in the model
 */
#include "format/burnpack/burnpack.h"
#include "format/losses.h"
#include "grammar/json.h"

/* Split "ID.REST"; false: the name has another form. */
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
    bool found = false;
    for (uint32_t i = map + 1; i < heft_ix_value_next(x, map) && !found;
         i = heft_ix_value_next(x, i))
        found = split_name(&id, &rest, heft_ix_value(x, i)->key) && heft_str_is(rest, "__rank");
    return found;
}

bool heft_burnpack_is_optimizer(const heft_index *x)
{
    bool found = false;
    for (uint32_t i = 0; i < x->values.len && !found; i = heft_ix_value_next(x, i)) {
        const heft_value *v = heft_ix_value(x, i);
        found = v->kind == HEFT_KIND_MAP && heft_str_is(v->key, heft_burnpack_scalars) &&
                has_rank(x, i);
    }
    return found;
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
                      "it has no param_id: Burn loads an optimizer's record only if every tensor "
                      "has one");
        else if (!split_name(&id, &rest, heft_ix_name(c->x, t)) || id != ids[t])
            c->report(
                c, HEFT_WARNING, "burnpack/record-id", nowhere, t,
                "its name does not begin with its param_id: Burn will not find the tensor in an "
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
                               "its param_id is taken from its name, as Burn requires in an "
                               "optimizer's record");
}
