/* dedup.c - find parts with equal bytes, such as tied weights.  Parts with the same source are
 * found without reading; then the bytes of parts that may be equal are compared. */
#include "core/write/convert/copy.h"

#include "base/blake3.h"
#include "base/name_hash.h"
#include "base/sort.h"
#include "core/read/input_window.h"

enum { EDGE = 64, POLL = 1024 };

typedef struct dedup_job {
    heft_planner *p;
    const heft_file *in;
    const heft_origin *origins;
    const heft_dedup *opt;
    uint32_t *duplicate_of;
    uint32_t *ids, *scratch; /* parts, in the order that the pass needs */
    uint32_t count;
    uint64_t *edge_hash; /* by part: hash of the first and last bytes; 0: not a candidate */
    heft_hash *digests;  /* by position in ids */
    heft_progress progress;
} dedup_job;

static const heft_ix_part_row *target(const dedup_job *t, uint32_t part)
{
    return heft_ix_part_row_at(&t->p->x, part);
}

static const heft_ix_part_row *source(const dedup_job *t, uint32_t part)
{
    return heft_ix_part_row_at(&t->in->x, t->origins[part].part);
}

/* ---- the same source, changed in the same way ---- */

static int order_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Order two parts that are views of the same bytes. */
static int order_views(const heft_index *x, uint32_t a, uint32_t b)
{
    const heft_ix_view *v = heft_ix_view_of(x, a), *w = heft_ix_view_of(x, b);
    if (!v || !w)
        return !v - !w;
    uint32_t rank = heft_ix_row(x, v->tensor)->rank;
    const uint64_t *s = heft_ix_strides(x, v), *t = heft_ix_strides(x, w);
    int order = order_u64(v->first, w->first);
    order = order ? order : order_u64(rank, heft_ix_row(x, w->tensor)->rank);
    if (order || !s || !t)
        return order ? order : !s - !t;
    for (uint32_t i = 0; i < rank && !order; i++) {
        order = order_u64(s[i], t[i]);
        order = order ? order
                      : order_u64(heft_ix_dims(x, v->tensor)[i], heft_ix_dims(x, w->tensor)[i]);
    }
    return order;
}

static int order_sources(const dedup_job *t, uint32_t a, uint32_t b)
{
    const heft_ix_part_row *p = source(t, a), *q = source(t, b);
    const heft_origin *o = &t->origins[a], *r = &t->origins[b];
    int order = order_u64(p->offset, q->offset);
    order = order ? order : order_u64(p->stored, q->stored);
    order = order ? order : order_u64(p->length, q->length);
    order = order ? order : order_u64(p->encoding, q->encoding);
    order = order ? order : order_u64(p->flags, q->flags);
    order = order ? order : order_u64(o->dtype, r->dtype);
    order = order ? order : order_u64(target(t, a)->dtype, target(t, b)->dtype);
    order = order ? order : order_u64(o->transposed, r->transposed);
    order = order ? order : order_u64(o->rows, r->rows);
    order = order ? order : order_u64(o->row, r->row);
    order = order ? order : order_u64((uintptr_t)o->importance, (uintptr_t)r->importance);
    order = order ? order : order_u64(o->layout_target, r->layout_target);
    order = order ? order : order_u64(o->tensor, r->tensor);
    order = order || !(p->flags & HEFT_P_VIEW) ? order : order_views(&t->in->x, o->part, r->part);
    if (order || p->encoding == HEFT_RAW)
        return order;
    /* Digests of decoded bytes that differ must both be checked, so that both parts are read. */
    return heft_str_order(heft_ix_digest_of(&t->in->x, o->part),
                          heft_ix_digest_of(&t->in->x, r->part));
}

static bool sorts_by_source(const void *ctx, uint32_t a, uint32_t b)
{
    return order_sources(ctx, a, b) < 0;
}

static void merge_sources(dedup_job *t)
{
    heft_sort(t->ids, t->scratch, t->count, sorts_by_source, t);
    for (uint32_t i = 1; i < t->count; i++)
        if (source(t, t->ids[i])->stored && !order_sources(t, t->ids[i - 1], t->ids[i]))
            t->duplicate_of[t->ids[i]] = t->duplicate_of[t->ids[i - 1]];
}

/* ---- the same bytes ---- */

static heft_status hash_edges(dedup_job *t, uint32_t part, heft_error *err)
{
    uint8_t edges[2 * EDGE] = { 0 };
    uint64_t length = target(t, part)->length;
    size_t n = length < EDGE ? (size_t)length : EDGE;
    uint32_t from = t->origins[part].part;
    heft_status st = HEFT_OK;
    if (n)
        st = heft_part_read(edges, t->in, from, 0, n, err);
    if (!st && n)
        st = heft_part_read(edges + EDGE, t->in, from, length - n, n, err);
    t->edge_hash[part] = heft_siphash13(t->p->x.key.secret, edges, sizeof edges);
    return st;
}

static bool sorts_by_mark(const void *ctx, uint32_t a, uint32_t b)
{
    const dedup_job *t = ctx;
    uint64_t m = target(t, a)->length, n = target(t, b)->length;
    return m != n ? m < n : t->edge_hash[a] < t->edge_hash[b];
}

/* Keep the parts that may be equal to a neighbour in the sorted list. */
static void keep_candidates(dedup_job *t)
{
    uint32_t count = 0;
    bool before = false;
    for (uint32_t i = 0; i < t->count; i++) {
        bool next = i + 1 < t->count && !sorts_by_mark(t, t->ids[i], t->ids[i + 1]);
        if (before || next)
            t->ids[count++] = t->ids[i];
        before = next;
    }
    t->count = count;
}

static heft_status digest_part(dedup_job *t, uint32_t part, heft_hash *out, heft_error *err)
{
    uint32_t from = t->origins[part].part;
    uint64_t length = target(t, part)->length;
    heft_chunks c;
    heft_blake3 h;
    heft_blake3_init(&h);
    const uint8_t *view = length ? heft_part_in_place(t->in, from) : NULL;
    heft_status st = heft_chunks_open(&c, t->in->host->allocator, view, length, err);
    while (!st && !heft_progress_halted(&t->progress) && heft_chunks_next(&c)) {
        heft_progress_add(&t->progress, 0);
        st = c.buf ? heft_part_read(c.buf, t->in, from, c.at, c.len, err)
                   : heft_file_count_read(t->in, from, c.len, err);
        if (!st)
            heft_blake3_update(&h, c.data, c.len);
    }
    heft_blake3_final(&h, out->bytes);
    heft_chunks_close(&c);
    return st;
}

static void run_digest(void *arg, size_t i)
{
    dedup_job *t = arg;
    heft_error err;
    heft_status st = heft_progress_halted(&t->progress)
                         ? HEFT_OK
                         : digest_part(t, t->ids[i], &t->digests[i], &err);
    if (st)
        heft_progress_fail(&t->progress, st, &err);
}

/* Order two positions in ids. */
static int order_digests(const dedup_job *t, uint32_t a, uint32_t b)
{
    int order = order_u64(target(t, t->ids[a])->length, target(t, t->ids[b])->length);
    return order ? order : memcmp(t->digests[a].bytes, t->digests[b].bytes, HEFT_HASH_BYTES);
}

static bool sorts_by_digest(const void *ctx, uint32_t a, uint32_t b)
{
    const dedup_job *t = ctx;
    int order = order_digests(t, a, b);
    return order ? order < 0 : t->ids[a] < t->ids[b];
}

static void merge_digests(dedup_job *t, uint32_t *positions)
{
    for (uint32_t i = 0; i < t->count; i++)
        positions[i] = i;
    heft_sort(positions, t->scratch, t->count, sorts_by_digest, t);
    for (uint32_t i = 1; i < t->count; i++)
        if (!order_digests(t, positions[i - 1], positions[i]))
            t->duplicate_of[t->ids[positions[i]]] = t->duplicate_of[t->ids[positions[i - 1]]];
}

/* Compare parts by digests of 256 bits; equal digests mean equal bytes. */
static heft_status merge_equal_bytes(dedup_job *t, heft_error *err)
{
    heft_memory mem = { t->in->host->allocator, UINT64_MAX, 0 };
    size_t bytes = t->count * (sizeof(heft_hash) + sizeof(uint32_t)) + 1;
    if (!t->count)
        return HEFT_OK;
    t->digests = heft_mem_alloc(&mem, bytes);
    if (!t->digests)
        return heft_error_no_memory(err, "to compare parts");
    heft_host_run(t->in->host, t->count, run_digest, t);
    heft_status st = heft_progress_end(&t->progress, err);
    if (!st)
        merge_digests(t, (uint32_t *)(t->digests + t->count));
    heft_mem_free(&mem, t->digests, bytes);
    return st;
}

/* ---- both passes ---- */

/* Keep the first part of each group found by source, and hash the first and last bytes. */
static heft_status hash_first_parts(dedup_job *t, heft_error *err)
{
    uint32_t count = 0;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < t->p->x.parts.len && !st; i++) {
        const heft_origin *o = &t->origins[i];
        bool is_copied_as_is = !target(t, i)->length ||
                               (heft_ix_is_plain(source(t, i)) && !o->transposed &&
                                !o->layout_target && o->dtype == target(t, i)->dtype);
        if (t->edge_hash[i] && t->duplicate_of[i] == i && is_copied_as_is) {
            st = t->opt->equal_id ? HEFT_OK : hash_edges(t, i, err);
            t->ids[count++] = i;
        }
        /* The caller may stop the search; no byte counts as done yet. */
        if (!st && i % POLL == 0) {
            heft_progress_add(&t->progress, 0);
            st = heft_progress_end(&t->progress, err);
        }
    }
    t->count = count;
    return st;
}

/* ---- bytes that were compared before ---- */

static int order_equal_ids(const dedup_job *t, uint32_t a, uint32_t b)
{
    return order_u64(t->opt->equal_id[t->origins[a].part], t->opt->equal_id[t->origins[b].part]);
}

static bool sorts_by_equal_id(const void *ctx, uint32_t a, uint32_t b)
{
    int order = order_equal_ids(ctx, a, b);
    return order ? order < 0 : a < b;
}

static heft_status merge_contents(dedup_job *t, heft_error *err)
{
    heft_status st = hash_first_parts(t, err);
    if (!st && t->opt->equal_id) {
        heft_sort(t->ids, t->scratch, t->count, sorts_by_equal_id, t);
        for (uint32_t i = 1; i < t->count; i++)
            if (!order_equal_ids(t, t->ids[i - 1], t->ids[i]))
                t->duplicate_of[t->ids[i]] = t->duplicate_of[t->ids[i - 1]];
    } else if (!st) {
        heft_sort(t->ids, t->scratch, t->count, sorts_by_mark, t);
        keep_candidates(t);
        st = merge_equal_bytes(t, err);
    }
    return st;
}

/* List the parts of all tensors that are written. */
static void list_parts(dedup_job *t)
{
    for (uint32_t id = 0; id < heft_ix_tensors(&t->p->x); id++) {
        const heft_ix_tensor_row *row = heft_ix_row(&t->p->x, id);
        for (uint32_t k = 0; k < row->part_count; k++) {
            /* A part in a converted layout differs from the source bytes: never deduplicate by
             * source. */
            if (t->origins[row->first_part + k].layout_target)
                continue;
            t->ids[t->count++] = row->first_part + k;
            t->edge_hash[row->first_part + k] = 1;
        }
    }
}

heft_status heft_dedup_parts(uint32_t *duplicate_of, heft_planner *p, const heft_file *in,
                             const heft_origin *origins, const heft_dedup *opt, heft_error *err)
{
    uint32_t part_count = p->x.parts.len;
    heft_memory mem = { in->host->allocator, UINT64_MAX, 0 };
    size_t bytes = part_count * (sizeof(uint64_t) + 2 * sizeof(uint32_t)) + 1;
    dedup_job t = {
        .p = p, .in = in, .origins = origins, .opt = opt, .duplicate_of = duplicate_of
    };
    t.edge_hash = heft_mem_alloc(&mem, bytes);
    if (!t.edge_hash)
        return heft_error_no_memory(err, "to compare parts");
    memset(t.edge_hash, 0, bytes);
    t.progress = (heft_progress){ .fn = opt->progress, .ctx = opt->ctx };
    for (uint32_t i = 0; i < part_count; i++)
        t.progress.total += target(&t, i)->length;
    t.ids = (uint32_t *)(t.edge_hash + part_count);
    t.scratch = t.ids + part_count;
    list_parts(&t);
    merge_sources(&t);
    heft_file_enter(in);
    heft_status st = opt->contents ? merge_contents(&t, err) : HEFT_OK;
    heft_status left = heft_file_leave(in, err);
    for (uint32_t i = 0; i < part_count; i++)
        duplicate_of[i] = duplicate_of[duplicate_of[i]];
    heft_mem_free(&mem, t.edge_hash, bytes);
    return left ? left : st;
}

/* ---- tied tensors of a file ---- */

static int order_ranges(const heft_index *x, uint32_t a, uint32_t b)
{
    const heft_ix_tensor_row *p = heft_ix_row(x, a), *q = heft_ix_row(x, b);
    int order = order_u64(p->part_count, q->part_count);
    for (uint32_t k = 0; !order && k < p->part_count; k++) {
        const heft_ix_part_row *i = heft_ix_part_row_at(x, p->first_part + k);
        const heft_ix_part_row *j = heft_ix_part_row_at(x, q->first_part + k);
        order = order_u64(i->offset, j->offset);
        order = order ? order : order_u64(i->stored, j->stored);
        order = order ? order : order_u64(i->length, j->length);
        order = order ? order : order_u64(i->encoding, j->encoding);
        order = order ? order : order_u64(i->flags, j->flags);
        if (!order && i->flags & HEFT_P_VIEW)
            order = order_views(x, p->first_part + k, q->first_part + k);
    }
    return order;
}

static bool sorts_by_range(const void *ctx, uint32_t a, uint32_t b)
{
    return order_ranges(ctx, a, b) < 0;
}

heft_status heft_tensor_find_tied(uint32_t *first, const heft_file *f, heft_error *err)
{
    uint32_t n = heft_ix_tensors(&f->x);
    heft_memory mem = { f->host->allocator, UINT64_MAX, 0 };
    size_t bytes = (2 * (size_t)n + 1) * sizeof(uint32_t);
    uint32_t *ids = heft_mem_alloc(&mem, bytes);
    if (!ids)
        return heft_error_no_memory(err, "to find shared bytes");
    for (uint32_t i = 0; i < n; i++)
        ids[i] = first[i] = i;
    heft_sort(ids, ids + n, n, sorts_by_range, &f->x);
    for (uint32_t i = 1; i < n; i++) {
        const heft_ix_tensor_row *row = heft_ix_row(&f->x, ids[i]);
        uint64_t stored = 0;
        for (uint32_t k = 0; k < row->part_count; k++)
            stored |= heft_ix_part_row_at(&f->x, row->first_part + k)->stored;
        if (stored && !order_ranges(&f->x, ids[i - 1], ids[i]))
            first[ids[i]] = first[ids[i - 1]];
    }
    heft_mem_free(&mem, ids, bytes);
    return HEFT_OK;
}
