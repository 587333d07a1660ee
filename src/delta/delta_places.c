/* delta_places.c - where in the file of its base a delta changes bytes. */
#include "delta/delta_places.h"

#include "base/blake3.h"
#include "base/error.h"
#include "base/sort.h"
#include "core/read/progress.h"
#include "core/read/stream.h"
#include "delta/delta_scan.h"
#include "delta/delta_settle.h"

static const char purpose[] = "to apply a delta in place";

typedef struct changed { /* a tensor of which bytes change */
    uint32_t item;
    uint64_t offset, bytes; /* in the file */
    uint32_t part;          /* number in the base */
    heft_delta_settled settled;
} changed;

typedef struct place {
    uint32_t row;
    uint32_t block;
} place;

struct heft_delta_places {
    const heft_file *base;
    const heft_delta *d;
    heft_memory mem;
    uint32_t *tensors; /* tensor of the base, by item */
    changed *rows;     /* by offset */
    uint32_t count;
    heft_vec places; /* place */
    bool has_xors, has_digests;
    heft_stream *xors; /* exclusive ors of row `xors_of` */
    uint32_t xors_of;
    heft_progress progress;
};

static size_t all_items(const heft_delta_places *p)
{
    return (size_t)p->d->items.len + 1;
}

/* ---- what cannot be done in place ---- */

static heft_status refuse(heft_error *err, const char *what)
{
    return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                            "%s: this cannot be done in place (write a new file: -o NEW)", what);
}

static heft_status refuse_tensor(heft_error *err, heft_str name, const char *what)
{
    return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                            "tensor %q %s: this cannot be done in place (write a new file: -o NEW)",
                            name, what);
}

static heft_status check_model(const heft_delta_places *p, heft_error *err)
{
    const heft_delta_sums *s = &p->d->sums;
    if (s->tensors[HEFT_CHANGE_ADDED] || s->tensors[HEFT_CHANGE_REMOVED] ||
        s->tensors[HEFT_CHANGE_WHOLE])
        return refuse(err, "the delta adds, removes or replaces tensors");
    if (s->metadata)
        return refuse(err, "the delta changes metadata");
    if (p->base->opened_shard_count || heft_shard_file_count(p->base))
        return refuse(err, "the model is in several files");
    if (p->base->gzip.is_compressed || p->base->gzip.was_decompressed)
        return refuse(err, "the file is compressed");
    return HEFT_OK;
}

static heft_status check_part(const heft_delta_places *p, uint32_t tensor, heft_error *err)
{
    const heft_index *x = &p->base->x;
    uint32_t part = heft_ix_row(x, tensor)->first_part;
    heft_str name = heft_ix_name(x, tensor);
    if (!heft_ix_is_plain(heft_ix_part_row_at(x, part)))
        return refuse_tensor(err, name, "is compressed, or its elements are not in order");
    if (heft_part_checksum(p->base, part, true) != HEFT_NONE)
        return refuse_tensor(err, name, "has a checksum in the file");
    return HEFT_OK;
}

/* Tensors that share bytes would all change: of parts by offset, each is compared with the one
 * that reaches furthest so far. */
static heft_status check_shared(heft_delta_places *p, const uint8_t *is_changed,
                                const uint32_t *order, uint32_t count, heft_error *err)
{
    const heft_index *x = &p->base->x;
    uint64_t reach = 0;
    uint32_t furthest = HEFT_NONE;
    for (uint32_t i = 0; i < count; i++) {
        const heft_ix_part_row *row = heft_ix_part_row_at(x, order[i]);
        bool is_shared = furthest != HEFT_NONE && row->offset < reach;
        if (is_shared && (is_changed[order[i]] || is_changed[furthest]))
            return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                    "tensors share the bytes at %U: this cannot be done in place "
                                    "(write a new file: -o NEW)",
                                    row->offset);
        if (row->offset + row->stored > reach) {
            reach = row->offset + row->stored;
            furthest = order[i];
        }
    }
    return HEFT_OK;
}

static heft_status check_layout(heft_delta_places *p, heft_error *err)
{
    uint32_t count = 0;
    size_t parts = (size_t)heft_ix_all_parts(&p->base->x) + 1;
    uint32_t *order = heft_ix_order_in(&p->mem, &p->base->x, &count);
    uint8_t *is_changed = heft_mem_alloc(&p->mem, parts);
    heft_status st = order && is_changed ? HEFT_OK : heft_error_no_memory(err, purpose);
    if (!st) {
        memset(is_changed, 0, parts);
        for (uint32_t i = 0; i < p->count; i++)
            is_changed[p->rows[i].part] = 1;
        st = check_shared(p, is_changed, order, count, err);
    }
    heft_ix_order_free_in(&p->mem, &p->base->x, order);
    heft_mem_free(&p->mem, is_changed, parts);
    return st;
}

/* ---- the tensors that change ---- */

static bool row_before(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_delta_places *p = ctx;
    uint32_t x = p->tensors[a], y = p->tensors[b];
    const heft_index *base = &p->base->x;
    uint64_t i = x == HEFT_NONE
                     ? 0
                     : heft_ix_part_row_at(base, heft_ix_row(base, x)->first_part)->offset;
    uint64_t k = y == HEFT_NONE
                     ? 0
                     : heft_ix_part_row_at(base, heft_ix_row(base, y)->first_part)->offset;
    return i < k;
}

static heft_status add_row(heft_delta_places *p, uint32_t item, heft_error *err)
{
    heft_change change = heft_delta_item_at(p->d, item)->row.change;
    if (change == HEFT_CHANGE_NONE)
        return HEFT_OK;
    uint32_t tensor = p->tensors[item], part = heft_ix_row(&p->base->x, tensor)->first_part;
    const heft_ix_part_row *row = heft_ix_part_row_at(&p->base->x, part);
    HEFT_TRY(check_part(p, tensor, err));
    p->has_xors = p->has_xors || change == HEFT_CHANGE_XOR;
    p->progress.total += row->length;
    p->rows[p->count++] = (changed){ .item = item,
                                     .part = part,
                                     .offset = row->offset,
                                     .bytes = row->length,
                                     .settled = { .loaded = { .unit = 1 } } };
    if (change != HEFT_CHANGE_XOR)
        return HEFT_OK;
    uint64_t xors =
        heft_ix_part_row_at(&p->d->f->x, heft_delta_item_at(p->d, item)->part[0])->length;
    return xors == row->length ? HEFT_OK
                               : heft_delta_bad(err, heft_delta_item_at(p->d, item)->row.name,
                                                "has another length than the tensor");
}

static heft_status add_rows(heft_delta_places *p, heft_error *err)
{
    size_t bytes = 2 * all_items(p) * sizeof(uint32_t);
    uint32_t *order = heft_mem_alloc(&p->mem, bytes);
    p->rows = heft_mem_alloc(&p->mem, all_items(p) * sizeof *p->rows);
    heft_status st = order && p->rows ? HEFT_OK : heft_error_no_memory(err, purpose);
    if (!st)
        heft_sort_numbers(order, p->d->items.len, row_before, p);
    for (uint32_t i = 0; i < p->d->items.len && !st; i++)
        st = add_row(p, order[i], err);
    heft_mem_free(&p->mem, order, bytes);
    return st ? st : check_layout(p, err);
}

/* ---- the values that are replaced ---- */

static heft_status compare_old(const heft_delta_places *p, const changed *c, heft_error *err)
{
    const heft_delta_item *item = heft_delta_item_at(p->d, c->item);
    heft_hash got;
    heft_blake3 h;
    if (!item->has_replaced || !p->has_digests)
        return HEFT_OK;
    heft_blake3_init(&h);
    heft_blake3_update(&h, c->settled.old, c->settled.old_bytes - 1);
    heft_blake3_final(&h, got.bytes);
    if (!memcmp(got.bytes, item->replaced.bytes, HEFT_HASH_BYTES))
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_ARGUMENT,
                            "tensor %q has other values in the base: the delta was made from "
                            "another model",
                            item->row.name);
}

static heft_status load(heft_delta_places *p, changed *c, heft_error *err)
{
    c->settled.wants_old = true;
    HEFT_TRY(heft_delta_settle(&c->settled, p->d, c->item, p->base, p->tensors[c->item],
                               p->has_digests, err));
    return compare_old(p, c, err);
}

static void load_row(void *arg, size_t i)
{
    heft_delta_places *p = arg;
    changed *c = &p->rows[i];
    heft_error err;
    if (heft_progress_halted(&p->progress) ||
        heft_delta_item_at(p->d, c->item)->row.change == HEFT_CHANGE_XOR)
        return;
    heft_status st = load(p, c, &err);
    if (st)
        heft_progress_fail(&p->progress, st, &err);
    heft_progress_add(&p->progress, c->bytes);
}

/* ---- places ---- */

static heft_status add_places(heft_delta_places *p, heft_error *err)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const heft_delta_loaded *l = &p->rows[i].settled.loaded;
        uint64_t blocks = l->starts ? l->blocks
                                    : (p->rows[i].bytes + HEFT_DELTA_BLOCK - 1) / HEFT_DELTA_BLOCK;
        for (uint64_t b = 0; b < blocks; b++) {
            place next = { i, (uint32_t)b };
            if (l->starts && l->starts[b] == l->starts[b + 1])
                continue;
            if (!heft_vec_add(&p->mem, &p->places, &next, sizeof next))
                return heft_error_no_memory(err, purpose);
        }
    }
    return HEFT_OK;
}

static heft_status prepare(heft_delta_places *p, const heft_apply_options *o, heft_error *err)
{
    HEFT_TRY(check_model(p, err));
    p->tensors = heft_mem_alloc(&p->mem, all_items(p) * sizeof *p->tensors);
    if (!p->tensors)
        return heft_error_no_memory(err, purpose);
    HEFT_TRY(heft_delta_match(p->tensors, p->d, p->base, err));
    HEFT_TRY(add_rows(p, err));
    if (!o->no_verify)
        HEFT_TRY(heft_delta_verify_base(p->tensors, p->d, p->base, !o->verify_all, o, err));
    heft_host_run(p->base->host, p->count, load_row, p);
    HEFT_TRY(heft_progress_end(&p->progress, err));
    return add_places(p, err);
}

heft_status heft_delta_places_open(heft_delta_places **out, const heft_file *base,
                                   const heft_delta *d, const heft_apply_options *opt,
                                   heft_error *err)
{
    const heft_allocator *al = base->host->allocator;
    heft_delta_places *p = heft_alloc(al, sizeof *p, 16);
    *out = p;
    if (!p)
        return heft_error_no_memory(err, purpose);
    *p = (heft_delta_places){ .base = base,
                              .d = d,
                              .mem = { al, UINT64_MAX, 0 },
                              .has_digests = !opt->no_verify,
                              .progress = { .fn = opt->progress, .ctx = opt->ctx } };
    heft_file_enter(base);
    heft_file_enter(d->f);
    heft_status st = prepare(p, opt, err);
    st = heft_file_leave_input(d->f, HEFT_INPUT_SECOND, st, err);
    st = heft_file_leave_input(base, HEFT_INPUT_FIRST, st, err);
    if (st) {
        heft_delta_places_close(p);
        *out = NULL;
    }
    p = *out;
    if (p)
        p->base = NULL; /* may be closed */
    return st;
}

size_t heft_delta_places_count(const heft_delta_places *p)
{
    return p->places.len;
}

heft_delta_place heft_delta_places_at(const heft_delta_places *p, size_t i)
{
    const place *at = (const place *)p->places.ptr + i;
    const changed *c = &p->rows[at->row];
    const heft_delta_loaded *l = &c->settled.loaded;
    uint64_t from = (uint64_t)at->block * HEFT_DELTA_BLOCK * l->unit;
    if (!l->starts) {
        uint64_t left = c->bytes - from;
        uint32_t length = left < HEFT_DELTA_BLOCK ? (uint32_t)left : HEFT_DELTA_BLOCK;
        return (heft_delta_place){
            .at = c->offset + from, .length = length, .unit = 1, .count = length
        };
    }
    uint64_t first = l->starts[at->block];
    uint32_t count = (uint32_t)(l->starts[at->block + 1] - first);
    const uint16_t *positions = l->positions + first;
    return (heft_delta_place){ .at = c->offset + from + (uint64_t)positions[0] * l->unit,
                               .length = (positions[count - 1] - positions[0] + 1u) * l->unit,
                               .unit = l->unit,
                               .count = count,
                               .positions = positions,
                               .old = c->settled.old + first * l->unit,
                               .new = l->values + first * l->unit };
}

uint64_t heft_delta_places_bytes(const heft_delta_places *p)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const heft_delta_loaded *l = &p->rows[i].settled.loaded;
        bytes += l->starts ? l->starts[l->blocks] * l->unit : p->rows[i].bytes;
    }
    return bytes;
}

heft_range heft_delta_places_range(const heft_delta_places *p)
{
    if (!p->places.len)
        return (heft_range){ 0, 0 };
    heft_delta_place first = heft_delta_places_at(p, 0);
    heft_delta_place last = heft_delta_places_at(p, p->places.len - 1);
    return (heft_range){ first.at, last.at + last.length - first.at };
}

/* ---- new bytes ---- */

static heft_status put_xor(heft_delta_places *p, const place *at, uint8_t *bytes, size_t len,
                           heft_error *err)
{
    uint8_t buf[HEFT_DELTA_BLOCK / 16];
    const changed *c = &p->rows[at->row];
    if (!p->xors || p->xors_of != at->row) {
        heft_stream_close(p->xors);
        p->xors = NULL;
        p->xors_of = at->row;
        heft_status st = heft_stream_open_checked(&p->xors, p->d->f,
                                                  heft_delta_item_at(p->d, c->item)->part[0], err);
        HEFT_TRY(heft_error_input(err, st, HEFT_INPUT_SECOND));
    }
    for (size_t n; len; len -= n, bytes += n) {
        n = len < sizeof buf ? len : sizeof buf;
        HEFT_TRY(heft_error_input(err, heft_stream_read(buf, p->xors, n, err), HEFT_INPUT_SECOND));
        heft_delta_xor(bytes, buf, n);
    }
    return HEFT_OK;
}

heft_status heft_delta_places_put(heft_delta_places *p, size_t i, uint8_t *bytes, heft_error *err)
{
    heft_delta_place at = heft_delta_places_at(p, i);
    if (!at.positions)
        return put_xor(p, (const place *)p->places.ptr + i, bytes, at.length, err);
    heft_delta_put(bytes, at.positions[0], at.length / at.unit, at.positions, at.new, at.count,
                   at.unit);
    return HEFT_OK;
}

void heft_delta_places_run(const heft_delta_places *p, size_t n, void (*fn)(void *arg, size_t i),
                           void *arg)
{
    heft_executor_run(p->has_xors ? NULL : p->d->f->host->executor, n, fn, arg);
}

void heft_delta_places_close(heft_delta_places *p)
{
    if (!p)
        return;
    const heft_allocator *al = p->mem.al;
    heft_stream_close(p->xors);
    for (uint32_t i = 0; i < p->count; i++)
        heft_delta_settled_free(&p->rows[i].settled, p->d);
    heft_mem_free(&p->mem, p->tensors, all_items(p) * sizeof *p->tensors);
    heft_mem_free(&p->mem, p->rows, all_items(p) * sizeof *p->rows);
    heft_vec_free(&p->mem, &p->places, sizeof(place));
    heft_free(al, p, sizeof *p, 16);
}
