/* accept_data.c - accept the data of parts from a writer's caller: in order and complete; indices
 * of sparse tensors are checked and converted to the element type of the file. */
#include "core/write/writer/writer.h"

#include "base/bisect.h"

/* ---- sparse tensors ---- */

/* Return the sparse tensor that `part` belongs to, if that tensor is being received or comes
 * next; otherwise NULL. */
static const heft_sparse_spec *sparse_at(const heft_writer *w, uint32_t part)
{
    heft_sparse_spec *const *specs = w->sparse.ptr;
    const heft_sparse_spec *s = w->next_sparse < w->sparse.len ? specs[w->next_sparse] : NULL;
    return s && part >= s->first_part && part - s->first_part < s->part_count ? s : NULL;
}

/* Return that sparse tensor if `part` holds indices; otherwise NULL. */
static const heft_sparse_spec *indices_at(const heft_writer *w, uint32_t part)
{
    const heft_sparse_spec *s = sparse_at(w, part);
    return s && heft_sparse_is_index(s, part - s->first_part) ? s : NULL;
}

uint64_t heft_writer_length(const heft_writer *w, uint32_t part)
{
    const heft_sparse_spec *s = indices_at(w, part);
    const heft_ix_part_row *row = heft_ix_part_row_at(&w->p.x, part);
    if (!s || row->dtype == s->types[part - s->first_part])
        return row->length;
    return heft_div(row->length, heft_dtype_size(row->dtype)) *
           heft_index_size(s->types[part - s->first_part]);
}

enum { INDEX_BLOCK = 128 }; /* indices checked at a time */

static heft_status put_indices(heft_writer *w, uint32_t part, const uint64_t *n, uint32_t count,
                               heft_error *err)
{
    uint8_t raw[INDEX_BLOCK * 8];
    uint32_t size = heft_dtype_size(heft_ix_part_row_at(&w->p.x, part)->dtype);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < size; k++)
            raw[i * size + k] = (uint8_t)(n[i] >> 8 * k);
    return heft_writer_put(w, part, raw, (size_t)count * size, err);
}

static heft_status receive_indices(heft_writer *w, uint32_t part, heft_dtype type,
                                   const uint8_t *data, size_t len, heft_error *err)
{
    uint64_t n[INDEX_BLOCK];
    uint32_t count = INDEX_BLOCK;
    bool as_is = type == heft_ix_part_row_at(&w->p.x, part)->dtype;
    const uint8_t *p = data;
    size_t left = len;
    while (count == INDEX_BLOCK) {
        HEFT_TRY(heft_sparse_take(&w->indices, &p, &left, n, INDEX_BLOCK, &count, err));
        if (!as_is)
            HEFT_TRY(put_indices(w, part, n, count, err));
    }
    return as_is ? heft_writer_put(w, part, data, len, err) : HEFT_OK;
}

/* If a format asks for the order of entries, require strict order; the indices are checked on
 * arrival. */
heft_status heft_writer_in_order(void *ctx, uint32_t tensor, bool *strictly)
{
    heft_writer *w = ctx;
    heft_sparse_spec *const *specs = w->sparse.ptr;
    uint32_t first = heft_ix_row(&w->p.x, tensor)->first_part;
    heft_bisect b = { .end = w->sparse.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, specs[b.mid]->first_part < first);
    specs[b.first]->is_strict = true;
    *strictly = true;
    return HEFT_OK;
}

/* ---- values that the format may forbid ---- */

/* The values arrive later: check them on arrival. */
heft_status heft_writer_check_values(void *ctx, uint32_t tensor, heft_value_rule *broken)
{
    heft_writer *w = ctx;
    (void)tensor;
    w->checks_values = true;
    *broken = HEFT_ANY_VALUE;
    return HEFT_OK;
}

static heft_status check_arrived(const heft_writer *w, uint32_t part, const void *data, size_t len,
                                 heft_error *err)
{
    heft_value_rule rule = w->checks_values && !heft_writer_leaves_out(w, part)
                               ? heft_value_rule_of(&w->p.x, part)
                               : HEFT_ANY_VALUE;
    bool is_end = w->received + len == heft_writer_length(w, part);
    size_t at = heft_value_rule_broken_at(rule, data, len, is_end);
    if (at == len)
        return HEFT_OK;
    heft_status st = heft_error_plain(err, HEFT_E_ARGUMENT, "part %U, byte %U: %s", (uint64_t)part,
                                      w->received + at, heft_value_rule_text(rule));
    return heft_error_rule(err, st, heft_value_rule_name(rule));
}

/* ---- parts in order ---- */

static heft_status start_part(heft_writer *w, heft_error *err)
{
    const heft_sparse_spec *s = sparse_at(w, w->part);
    w->is_started = true;
    if (w->is_late && w->part >= w->declared_parts)
        HEFT_TRY(heft_writer_append(w, err));
    if (!s || heft_writer_leaves_out(w, w->part))
        return HEFT_OK;
    if (w->part == s->first_part)
        heft_sparse_begin(&w->indices, s, w->p.host->allocator);
    return heft_sparse_begin_part(&w->indices, w->part - s->first_part, err);
}

static heft_status end_part(heft_writer *w, heft_error *err)
{
    const heft_sparse_spec *s = sparse_at(w, w->part);
    heft_status st = w->received ? HEFT_OK : heft_writer_put(w, w->part, NULL, 0, err);
    if (!st && s && !heft_writer_leaves_out(w, w->part))
        st = heft_sparse_end_part(&w->indices, err);
    if (s && w->part + 1 == s->first_part + s->part_count) {
        heft_sparse_end(&w->indices);
        w->next_sparse++;
    }
    w->part++;
    w->received = w->written = 0;
    w->is_started = false;
    return st;
}

heft_status heft_writer_advance(heft_writer *w, heft_error *err)
{
    heft_status st = HEFT_OK;
    while (!st && w->part < w->p.x.parts.len) {
        if (!w->is_started)
            st = start_part(w, err);
        if (st || w->received < heft_writer_length(w, w->part))
            return st;
        st = end_part(w, err);
    }
    return st;
}

heft_status heft_writer_write(heft_writer *w, uint32_t part, const void *data, size_t len,
                              heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    if (!w->begun)
        return heft_writer_argument_error(err, "data must be written after heft_writer_begin()");
    if (w->failed.status)
        return heft_writer_failure(w, err);
    if (!len)
        return part < w->p.x.parts.len
                   ? HEFT_OK
                   : heft_error_plain(err, HEFT_E_ARGUMENT, "there is no part %U", (uint64_t)part);
    if (part != w->part)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "got data of part %U, but part %U is next",
                                (uint64_t)part, (uint64_t)w->part);
    if (len > heft_writer_length(w, part) - w->received)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "part %U: more data than its %U bytes",
                                (uint64_t)part, heft_writer_length(w, part));
    const heft_sparse_spec *s = heft_writer_leaves_out(w, part) ? NULL : indices_at(w, part);
    HEFT_TRY(check_arrived(w, part, data, len, err));
    heft_status st = s ? receive_indices(w, part, s->types[part - s->first_part], data, len, err)
                       : heft_writer_put(w, part, data, len, err);
    w->received += len;
    if (!st)
        st = heft_writer_advance(w, err);
    return heft_writer_record_failure(w, st, err);
}
