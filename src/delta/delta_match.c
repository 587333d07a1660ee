/* delta_match.c - is a model the base of a delta? */
#include "base/error.h"
#include "delta/delta_foreign.h"
#include "delta/delta_open.h"

static const char purpose[] = "to compare the base with a delta";

static heft_status wrong_base(heft_error *err, heft_str tensor, const char *why)
{
    heft_status st = heft_error_plain(
        err, HEFT_E_ARGUMENT, "tensor %q %s: the delta was made from another model", tensor, why);
    return heft_error_input(err, st, HEFT_INPUT_FIRST);
}

static bool is_same_shape(const heft_index *x, uint32_t i, const heft_index *y, uint32_t k)
{
    const heft_ix_tensor_row *a = heft_ix_row(x, i), *b = heft_ix_row(y, k);
    return a->rank == b->rank && (!a->rank || !memcmp(heft_ix_dims(x, i), heft_ix_dims(y, k),
                                                      a->rank * sizeof(uint64_t)));
}

static heft_status match_item(uint32_t *out, const heft_delta *d, const heft_delta_item *item,
                              const heft_file *base, heft_error *err)
{
    heft_change change = item->row.change;
    heft_str name = item->row.name;
    uint32_t t = heft_tensor_find(base, name);
    *out = t;
    if (change == HEFT_CHANGE_ADDED)
        return t == HEFT_NONE ? HEFT_OK : wrong_base(err, name, "is in the base already");
    if (t == HEFT_NONE)
        return wrong_base(err, name, "is missing in the base");
    if (change == HEFT_CHANGE_WHOLE)
        return HEFT_OK;
    const heft_ix_tensor_row *row = heft_ix_row(&base->x, t);
    if (item->dtype && row->dtype != item->dtype)
        return wrong_base(err, name, "has another type in the base");
    if (change != HEFT_CHANGE_SPARSE && change != HEFT_CHANGE_XOR)
        return HEFT_OK;
    bool has_shape = item->coding == HEFT_DELTA_GAPS || item->coding == HEFT_DELTA_XORS;
    if (has_shape && !is_same_shape(&base->x, t, &d->f->x, item->row.tensor))
        return wrong_base(err, name, "has another shape in the base");
    return row->layout == HEFT_DENSE && row->part_count == 1
               ? HEFT_OK
               : wrong_base(err, name, "is not dense in the base");
}

/* Each tensor of the base has one item, if the delta lists all. */
static heft_status match_all(uint32_t *tensors, uint8_t *is_used, const heft_delta *d,
                             const heft_file *base, heft_error *err)
{
    for (uint32_t i = 0; i < d->items.len; i++) {
        const heft_delta_item *item = heft_delta_item_at(d, i);
        HEFT_TRY(match_item(&tensors[i], d, item, base, err));
        if (tensors[i] == HEFT_NONE)
            continue;
        if (is_used[tensors[i]])
            return heft_delta_bad(err, item->row.name, "is listed twice");
        is_used[tensors[i]] = 1;
    }
    for (uint32_t t = 0; t < heft_ix_tensors(&base->x) && d->lists_all; t++)
        if (!is_used[t])
            return wrong_base(err, heft_ix_name(&base->x, t), "is unknown to the delta");
    return HEFT_OK;
}

heft_status heft_delta_match(uint32_t *tensors, const heft_delta *d, const heft_file *base,
                             heft_error *err)
{
    const heft_allocator *al = base->host->allocator;
    size_t bytes = (size_t)heft_ix_tensors(&base->x) + 1;
    uint8_t *is_used = heft_alloc(al, bytes, 16);
    if (!is_used)
        return heft_error_no_memory(err, purpose);
    memset(is_used, 0, bytes);
    heft_status st = heft_error_input(err, heft_file_is_complete(base, err), HEFT_INPUT_FIRST);
    if (!st)
        st = match_all(tensors, is_used, d, base, err);
    heft_free(al, is_used, bytes, 16);
    return st;
}

/* ---- digests ---- */

static heft_status compare(const heft_delta *d, const uint32_t *items, const heft_hash *hashes,
                           uint32_t count, heft_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        const heft_delta_row *row = &heft_delta_item_at(d, items[i])->row;
        if (memcmp(hashes[i].bytes, row->base.bytes, HEFT_HASH_BYTES) != 0)
            return wrong_base(err, row->name, "has other values in the base");
    }
    return HEFT_OK;
}

heft_status heft_delta_verify_base(const uint32_t *tensors, const heft_delta *d,
                                   const heft_file *base, bool only_changed,
                                   const heft_apply_options *opt, heft_error *err)
{
    heft_memory mem = { base->host->allocator, UINT64_MAX, 0 };
    size_t all = (size_t)d->items.len + 1;
    uint32_t *chosen = heft_mem_alloc(&mem, all * sizeof *chosen), count = 0;
    uint32_t *items = heft_mem_alloc(&mem, all * sizeof *items);
    heft_hash *hashes = heft_mem_alloc(&mem, all * sizeof *hashes);
    heft_status st = chosen && items && hashes ? HEFT_OK : heft_error_no_memory(err, purpose);
    for (uint32_t i = 0; i < d->items.len && !st; i++) {
        const heft_delta_item *item = heft_delta_item_at(d, i);
        bool is_left_out = only_changed &&
                           (item->has_replaced || item->row.change == HEFT_CHANGE_NONE);
        if (!item->row.has_base || tensors[i] == HEFT_NONE || is_left_out)
            continue;
        items[count] = i;
        chosen[count++] = tensors[i];
    }
    if (!st && count)
        st = heft_tensor_hash_many(hashes, base, chosen, count, opt->progress, opt->ctx, err);
    st = heft_error_input(err, st, HEFT_INPUT_FIRST);
    if (!st)
        st = compare(d, items, hashes, count, err);
    heft_mem_free(&mem, chosen, all * sizeof *chosen);
    heft_mem_free(&mem, items, all * sizeof *items);
    heft_mem_free(&mem, hashes, all * sizeof *hashes);
    return st;
}
