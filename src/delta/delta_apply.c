/* delta_apply.c - opens the model that is a base with the changes of a delta. */
#include <heft/check.h>

#include "base/checked_math.h"
#include "base/error.h"
#include "base/sort.h"
#include "combine/combine.h"
#include "delta/delta_foreign.h"
#include "delta/delta_keys.h"
#include "delta/delta_open.h"
#include "delta/delta_scan.h"
#include "delta/delta_settle.h"

static const char purpose[] = "to apply a delta";

typedef struct changed { /* a tensor of the result that is computed */
    uint32_t item;
    heft_combine_input base, change; /* change: exclusive ors, or the whole tensor */
    heft_delta_settled settled;
} changed;

typedef struct applied {
    const heft_delta *d;
    const heft_file *base;
    heft_memory mem;
    uint32_t *tensors; /* tensor of the base, by item */
    changed *rows;
    uint32_t count;
    uint8_t *is_dropped; /* by tensor of the base */
    bool verifies;
    heft_progress progress; /* keeps the first error of the threads */
} applied;

typedef struct scratch { /* each thread has its own */
    heft_combine_reader base, change;
    uint8_t *buf;
    const heft_allocator *al;
} scratch;

enum { STEP = 64 << 10 };

static size_t all_items(const applied *a)
{
    return (size_t)a->d->items.len + 1;
}

static void free_applied(void *ctx)
{
    applied *a = ctx;
    const heft_allocator *al = a->mem.al;
    for (uint32_t i = 0; i < a->count; i++)
        heft_delta_settled_free(&a->rows[i].settled, a->d);
    heft_mem_free(&a->mem, a->tensors, all_items(a) * sizeof *a->tensors);
    heft_mem_free(&a->mem, a->rows, all_items(a) * sizeof *a->rows);
    heft_mem_free(&a->mem, a->is_dropped, (size_t)heft_ix_tensors(&a->base->x) + 1);
    heft_free(al, a, sizeof *a, 16);
}

/* ---- bytes of a tensor ---- */

/* Write the bytes of the units that lie only partly in [from, from + len). */
static void put_cut(const heft_delta_loaded *l, uint64_t unit, uint64_t from, uint8_t *out,
                    size_t len)
{
    uint64_t b = unit / HEFT_DELTA_BLOCK;
    for (uint64_t i = l->starts[b]; i < l->starts[b + 1]; i++) {
        if (l->positions[i] != unit % HEFT_DELTA_BLOCK)
            continue;
        for (uint32_t k = 0; k < l->unit; k++) {
            uint64_t at = unit * l->unit + k;
            if (at >= from && at - from < len)
                out[at - from] = l->values[i * l->unit + k];
        }
    }
}

/* Put the changes into bytes [from, from + len) of the base's tensor. */
static void put_changes(const heft_delta_loaded *l, uint64_t from, uint8_t *out, size_t len)
{
    uint64_t first = heft_div_up(from, l->unit), end = heft_div(from + len, l->unit);
    if (first * l->unit != from)
        put_cut(l, first - 1, from, out, len);
    if (end * l->unit != from + len && end + 1 != first)
        put_cut(l, end, from, out, len);
    for (uint64_t at = first, next; at < end; at = next) {
        uint64_t b = at / HEFT_DELTA_BLOCK, start = b * HEFT_DELTA_BLOCK;
        next = start + HEFT_DELTA_BLOCK < end ? start + HEFT_DELTA_BLOCK : end;
        heft_delta_put(out + (at * l->unit - from), at - start, next - at,
                       l->positions + l->starts[b], l->values + l->starts[b] * l->unit,
                       (uint32_t)(l->starts[b + 1] - l->starts[b]), l->unit);
    }
}

static heft_status put_xors(scratch *s, const changed *r, uint64_t from, uint8_t *out, size_t len,
                            heft_error *err)
{
    if (!s->buf)
        s->buf = heft_alloc(s->al, STEP, 64);
    if (!s->buf)
        return heft_error_no_memory(err, purpose);
    for (size_t n; len; len -= n, from += n, out += n) {
        n = len < STEP ? len : STEP;
        HEFT_TRY(heft_combine_read_bytes(&s->change, &r->change, from, s->buf, n, err));
        heft_delta_xor(out, s->buf, n);
    }
    return HEFT_OK;
}

static heft_status read_bytes(void *ctx, void *of_thread, uint32_t i, uint64_t from, uint8_t *out,
                              size_t len, heft_error *err)
{
    const applied *a = ctx;
    const changed *r = &a->rows[i];
    scratch *s = of_thread;
    s->al = s->base.al = s->change.al = a->mem.al;
    heft_change change = heft_delta_item_at(a->d, r->item)->row.change;
    if (change == HEFT_CHANGE_WHOLE || change == HEFT_CHANGE_ADDED)
        return heft_combine_read_bytes(&s->change, &r->change, from, out, len, err);
    HEFT_TRY(heft_combine_read_bytes(&s->base, &r->base, from, out, len, err));
    if (change == HEFT_CHANGE_XOR)
        return put_xors(s, r, from, out, len, err);
    put_changes(&r->settled.loaded, from, out, len);
    return HEFT_OK;
}

static void free_scratch(void *ctx, void *of_thread)
{
    scratch *s = of_thread;
    (void)ctx;
    heft_combine_reader_free(&s->base);
    heft_combine_reader_free(&s->change);
    if (s->buf)
        heft_free(s->al, s->buf, STEP, 64);
}

/* ---- what is computed ---- */

/* A whole tensor must have the bytes of its shape, as the combined file requires. */
static heft_status add_row(applied *a, uint32_t i, heft_error *err)
{
    const heft_delta_item *item = heft_delta_item_at(a->d, i);
    changed *r = &a->rows[a->count];
    uint32_t t = a->tensors[i];
    heft_change change = item->row.change;
    *r = (changed){ .item = i, .settled = { .loaded = { .unit = 1 } } };
    if (change == HEFT_CHANGE_NONE)
        return HEFT_OK;
    if (change == HEFT_CHANGE_REMOVED) {
        a->is_dropped[t] = 1;
        return HEFT_OK;
    }
    a->count++;
    if (item->part[0] != HEFT_NONE)
        r->change = heft_delta_input(a->d->f, HEFT_INPUT_SECOND, item->row.tensor, item->part[0]);
    if (change == HEFT_CHANGE_WHOLE || change == HEFT_CHANGE_ADDED)
        return HEFT_OK;
    const heft_ix_tensor_row *base = heft_ix_row(&a->base->x, t);
    r->base = heft_delta_input(a->base, HEFT_INPUT_FIRST, t, base->first_part);
    if (change == HEFT_CHANGE_XOR)
        return r->change.count == r->base.count
                   ? HEFT_OK
                   : heft_delta_bad(err, item->row.name, "has another length than the tensor");
    return HEFT_OK;
}

static heft_status add_rows(applied *a, heft_error *err)
{
    a->rows = heft_mem_alloc(&a->mem, all_items(a) * sizeof *a->rows);
    a->is_dropped = heft_mem_alloc(&a->mem, (size_t)heft_ix_tensors(&a->base->x) + 1);
    if (!a->rows || !a->is_dropped)
        return heft_error_no_memory(err, purpose);
    memset(a->is_dropped, 0, (size_t)heft_ix_tensors(&a->base->x) + 1);
    for (uint32_t i = 0; i < a->d->items.len; i++)
        HEFT_TRY(add_row(a, i, err));
    return HEFT_OK;
}

/* Compare the checksum of what the delta stores for a tensor; bring sparse changes into memory. */
static void settle(void *arg, size_t i)
{
    applied *a = arg;
    changed *r = &a->rows[i];
    heft_error err;
    if (heft_progress_halted(&a->progress))
        return;
    bool is_sparse = heft_delta_item_at(a->d, r->item)->row.change == HEFT_CHANGE_SPARSE;
    heft_status st = HEFT_OK;
    if (is_sparse)
        st = heft_delta_settle(&r->settled, a->d, r->item, a->base, a->tensors[r->item],
                               a->verifies, &err);
    else if (r->change.f)
        st = heft_error_input(&err, heft_part_verify(NULL, a->d->f, r->change.part, &err),
                              HEFT_INPUT_SECOND);
    if (st)
        heft_progress_fail(&a->progress, st, &err);
}

/* ---- metadata ---- */

static heft_status copy_set(heft_index *to, const heft_delta *d)
{
    const heft_index *x = &d->f->x;
    heft_status st = HEFT_OK;
    if (d->set == HEFT_NONE)
        return HEFT_OK;
    uint32_t end = heft_ix_value(x, d->set)->as.container.end;
    for (uint32_t i = d->set + 1; i < end && !st; i = heft_ix_value_next(x, i))
        st = heft_ix_copy_value(to, x, i, HEFT_NONE);
    return st;
}

/* The result has the metadata of the base as they change: those that are set follow the others. */
static heft_status set_values(heft_index *x, const applied *a, heft_memory *mem, heft_error *err)
{
    const heft_index *from = &a->base->x, *of_delta = &a->d->f->x;
    heft_delta_keys set, unset;
    bool has_memory = heft_delta_keys_within(&set, of_delta, a->d->set, mem);
    has_memory = heft_delta_keys_within(&unset, of_delta, a->d->unset, mem) && has_memory;
    heft_status st = has_memory ? HEFT_OK : heft_error_no_memory(err, purpose);
    x->values.len = 0;
    for (uint32_t i = 0; i < from->values.len && !st; i = heft_ix_value_next(from, i)) {
        heft_str key = heft_ix_value(from, i)->key;
        if (heft_delta_keys_find(&set, key) == HEFT_NONE &&
            heft_delta_keys_find(&unset, key) == HEFT_NONE)
            st = heft_ix_copy_value(x, from, i, HEFT_NONE);
    }
    heft_delta_keys_free(&set);
    heft_delta_keys_free(&unset);
    return st ? st : copy_set(x, a->d);
}

/* Copy attributes and identities of the base: a combined file leaves those of computed tensors
 * out. */
static heft_status set_attributes(heft_index *x, const heft_file *base)
{
    const heft_index *from = &base->x;
    const heft_ix_attr_row *attrs = from->attrs.ptr;
    x->attrs.len = 0;
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++)
        heft_ix_row(x, t)->attrs = 0;
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        uint32_t i = heft_tensor_find(base, heft_ix_name(x, t));
        if (i == HEFT_NONE)
            continue;
        heft_identity id = heft_ix_identity(from, i);
        HEFT_TRY(heft_ix_identify(x, t, &id));
        uint32_t k = heft_ix_row(from, i)->attrs;
        for (k = k ? k - 1 : from->attrs.len; k < from->attrs.len && attrs[k].tensor == i;
             k = heft_value_next(&attrs[k].value, k))
            HEFT_TRY(heft_ix_copy_value(x, from, k, t));
    }
    return HEFT_OK;
}

/* ---- the result ---- */

static bool row_before(const void *ctx, uint32_t i, uint32_t k)
{
    const applied *a = ctx;
    return a->tensors[a->rows[i].item] < a->tensors[a->rows[k].item];
}

/* A combined file wants its tensors in the order of those whose place they take. */
static heft_status sort_rows(applied *a, heft_error *err)
{
    size_t bytes = 2 * all_items(a) * sizeof(uint32_t);
    uint32_t *order = heft_mem_alloc(&a->mem, bytes);
    changed *sorted = heft_mem_alloc(&a->mem, all_items(a) * sizeof *sorted);
    heft_status st = order && sorted ? HEFT_OK : heft_error_no_memory(err, purpose);
    if (!st) {
        heft_sort_numbers(order, a->count, row_before, a);
        for (uint32_t i = 0; i < a->count; i++)
            sorted[i] = a->rows[order[i]];
    }
    heft_mem_free(&a->mem, order, bytes);
    heft_mem_free(&a->mem, st ? (void *)sorted : (void *)a->rows, all_items(a) * sizeof *sorted);
    a->rows = st ? a->rows : sorted;
    return st;
}

static heft_combine_tensor tensor_of(const applied *a, uint32_t i)
{
    const changed *r = &a->rows[i];
    const heft_combine_input *like = r->base.f ? &r->base : &r->change;
    return (heft_combine_tensor){ .name = heft_delta_item_at(a->d, r->item)->row.name,
                                  .place = a->tensors[r->item],
                                  .dtype = like->dtype,
                                  .rank = like->rank,
                                  .dims = like->dims,
                                  .is_bytes = true };
}

static const heft_combine_ops combine_ops = { .scratch_bytes = sizeof(scratch),
                                              .bytes = read_bytes,
                                              .free_scratch = free_scratch,
                                              .close = free_applied };

/* Takes a, also after an error. */
static heft_status combine(heft_file **out, applied *a, heft_error *err)
{
    heft_memory mem = a->mem;
    const heft_file *files[] = { a->base, a->d->f };
    size_t bytes = all_items(a) * sizeof(heft_combine_tensor);
    heft_combine_tensor *tensors = heft_mem_alloc(&mem, bytes);
    if (!tensors) {
        free_applied(a);
        return heft_error_no_memory(err, purpose);
    }
    for (uint32_t i = 0; i < a->count; i++)
        tensors[i] = tensor_of(a, i);
    heft_combination c = { .files = files,
                           .file_count = 2,
                           .tensors = tensors,
                           .count = a->count,
                           .is_dropped = a->is_dropped,
                           .label = heft_lit("changed tensors"),
                           .allow_nan = true,
                           .ops = &combine_ops,
                           .ctx = a };
    heft_status st = heft_combine_open(out, &c, err);
    heft_mem_free(&mem, tensors, bytes);
    if (st)
        return st;
    (*out)->x.err = err;
    st = set_values(&(*out)->x, a, &mem, err);
    if (!st)
        st = set_attributes(&(*out)->x, a->base);
    (*out)->x.err = NULL;
    if (st) {
        heft_file_close(*out);
        *out = NULL;
    }
    return st;
}

static heft_status prepare(applied *a, const heft_apply_options *o, heft_error *err)
{
    a->tensors = heft_mem_alloc(&a->mem, all_items(a) * sizeof *a->tensors);
    if (!a->tensors)
        return heft_error_no_memory(err, purpose);
    HEFT_TRY(heft_delta_match(a->tensors, a->d, a->base, err));
    HEFT_TRY(add_rows(a, err));
    if (!o->no_verify)
        HEFT_TRY(heft_delta_verify_base(a->tensors, a->d, a->base, false, o, err));
    heft_host_run(a->base->host, a->count, settle, a);
    HEFT_TRY(heft_progress_end(&a->progress, err));
    return sort_rows(a, err);
}

heft_status heft_delta_apply(heft_file **out, const heft_file *base, const heft_delta *d,
                             const heft_apply_options *opt, heft_error *err)
{
    heft_error own;
    heft_apply_options o = HEFT_APPLY_OPTIONS_INIT;
    const heft_allocator *al = base->host->allocator;
    err = heft_error_begin(err, &own);
    *out = NULL;
    HEFT_TRY(heft_sized_copy(&o, sizeof o, opt, err));
    applied *a = heft_alloc(al, sizeof *a, 16);
    if (!a)
        return heft_error_no_memory(err, purpose);
    *a = (applied){ .d = d, .base = base, .verifies = !o.no_verify, .mem = { al, UINT64_MAX, 0 } };
    heft_file_enter(base);
    heft_file_enter(d->f);
    heft_status st = prepare(a, &o, err);
    if (st)
        free_applied(a);
    else
        st = combine(out, a, err);
    st = heft_file_leave_input(d->f, HEFT_INPUT_SECOND, st, err);
    st = heft_file_leave_input(base, HEFT_INPUT_FIRST, st, err);
    if (st) {
        heft_file_close(*out);
        *out = NULL;
    }
    return heft_error_end(err, st);
}
