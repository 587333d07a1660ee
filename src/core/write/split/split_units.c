/* split_units.c - collect the tensors that stay together when a model is split. */
#include "core/write/split/split_units.h"

static const char purpose[] = "to split a model";

/* Allocate `count` + 1 zeroed numbers. */
static uint32_t *new_ids(heft_split_units *u, size_t count)
{
    uint32_t *ids = heft_arena_alloc(&u->x.arena, (count + 1) * sizeof *ids, sizeof *ids);
    if (ids)
        memset(ids, 0, (count + 1) * sizeof *ids);
    return ids;
}

/* Return the first tensor that shares all parts with `tensor`, or `tensor`. duplicate_of: by
 * part, or NULL. */
static uint32_t first_tied(const heft_index *x, const uint32_t *duplicate_of, uint32_t tensor)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    uint32_t other = tensor;
    for (uint32_t k = 0; duplicate_of && k < row->part_count; k++) {
        uint32_t owner = heft_ix_owner(x, duplicate_of[row->first_part + k]);
        if (k && owner != other)
            return tensor;
        other = owner;
    }
    return other;
}

static heft_status add_tensor(heft_split_units *u, const heft_file *in, const heft_planner *p,
                              uint32_t tensor, heft_error *err)
{
    const heft_index *x = &p->x;
    const heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    uint64_t *dims;
    uint32_t id;
    heft_str name = heft_ix_copy(&u->x, heft_ix_name(x, tensor));
    if (!name.ptr || heft_ix_tensor(&u->x, name, row->dtype, row->rank, &dims, &id))
        return heft_error_no_memory(err, purpose);
    if (row->rank)
        memcpy(dims, heft_ix_dims(x, tensor), row->rank * sizeof *dims);
    u->source[id] = heft_ix_find(&in->x, p->plan.source.name(p->plan.source.ctx, tensor));
    return u->source[id] != HEFT_NONE
               ? HEFT_OK
               : heft_error_plain(err, HEFT_E_UNSUPPORTED, "tensor %q is not in the input", name);
}

/* If the target stores equal parts once, find the parts that come from the same bytes; parts
 * that just happen to be equal need not stay together. */
static heft_status find_same_sources(heft_planner *p, uint32_t **duplicate_of, heft_error *err)
{
    if (!p->plan.duplicate_of)
        return HEFT_OK;
    *duplicate_of = heft_plan_alloc(&p->plan, p->x.parts.len * sizeof **duplicate_of);
    if (!*duplicate_of)
        return heft_error_no_memory(err, purpose);
    for (uint32_t i = 0; i < p->x.parts.len; i++)
        (*duplicate_of)[i] = i;
    return p->plan.source.find_duplicates(p->plan.source.ctx, *duplicate_of, false);
}

/* Add the tensors of the plan, and count the bytes of each unit. */
static heft_status add_tensors(heft_split_units *u, const heft_file *in, heft_planner *p,
                               heft_error *err)
{
    uint32_t *duplicate_of = NULL;
    uint32_t *unit = new_ids(u, u->tensors); /* by tensor: number of the unit, from 1 */
    heft_status st = unit ? find_same_sources(p, &duplicate_of, err)
                          : heft_error_no_memory(err, purpose);
    for (uint32_t t = 0; t < u->tensors && !st; t++) {
        const heft_ix_tensor_row *row = heft_ix_row(&p->x, t);
        uint32_t first = first_tied(&p->x, duplicate_of, t);
        st = add_tensor(u, in, p, t, err);
        if (!unit[first]) {
            for (uint32_t k = 0; k < row->part_count; k++)
                u->bytes[u->count] += heft_ix_part_row_at(&p->x, row->first_part + k)->length;
            u->total += u->bytes[u->count];
            unit[first] = ++u->count;
        }
        u->unit[t] = unit[first] - 1;
    }
    return st;
}

/* Give equal parts the same number, by the plan. */
static heft_status number_equal_parts(heft_split_units *u, const heft_file *in,
                                      const heft_planner *p, heft_error *err)
{
    if (!p->plan.duplicate_of)
        return HEFT_OK;
    u->equal_id = new_ids(u, in->x.parts.len);
    if (!u->equal_id)
        return heft_error_no_memory(err, purpose);
    for (uint32_t t = 0; t < u->tensors; t++) {
        const heft_ix_tensor_row *row = heft_ix_row(&p->x, t);
        uint32_t first = heft_ix_row(&in->x, u->source[t])->first_part;
        for (uint32_t k = 0; k < row->part_count; k++)
            u->equal_id[first + k] = p->plan.duplicate_of[row->first_part + k];
    }
    return HEFT_OK;
}

static void list_members(heft_split_units *u)
{
    for (uint32_t t = 0; t < u->tensors; t++)
        u->first_of[u->unit[t]]++;
    for (uint32_t i = 0, at = 0; i <= u->count; i++) {
        at += u->first_of[i];
        u->first_of[i] = at;
    }
    for (uint32_t t = u->tensors; t-- > 0;) /* fill each unit backwards, from the last tensor */
        u->members[--u->first_of[u->unit[t]]] = u->source[t];
}

heft_status heft_split_units_collect(heft_split_units *u, const heft_file *in, heft_planner *p,
                                     heft_error *err)
{
    uint32_t n = heft_ix_tensors(&p->x);
    heft_limits limits = HEFT_LIMITS_INIT;
    limits.memory = UINT64_MAX;
    limits.tensors = UINT32_MAX - 1;
    heft_host_init_index(in->host, &u->x, &limits);
    u->x.err = err;
    u->tensors = n;
    u->source = new_ids(u, n);
    u->unit = new_ids(u, n);
    u->members = new_ids(u, n);
    u->first_of = new_ids(u, n);
    u->bytes = heft_arena_alloc(&u->x.arena, (n + (size_t)1) * sizeof *u->bytes, 16);
    if (!u->source || !u->unit || !u->members || !u->first_of || !u->bytes)
        return heft_error_no_memory(err, purpose);
    memset(u->bytes, 0, (n + (size_t)1) * sizeof *u->bytes);
    HEFT_TRY(add_tensors(u, in, p, err));
    HEFT_TRY(number_equal_parts(u, in, p, err));
    HEFT_TRY(heft_ix_build_name_table(&u->x));
    list_members(u);
    return HEFT_OK;
}

void heft_split_units_free(heft_split_units *u)
{
    heft_ix_free(&u->x);
}
