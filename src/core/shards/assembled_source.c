/* assembled_source.c - a source that gathers the bytes of assembled tensors from their boxes.
 *
 * A read finds the boxes that have elements in its range.  The elements of a box are a sequence of
 * runs, which are consecutive in the tensor.  Long runs are read where they belong; short ones are
 * read together, since they are consecutive in the file, and copied to their places. */
#include "base/bisect.h"
#include "base/checked_math.h"
#include "base/error.h"
#include "base/sort.h"
#include "core/shards/assembly.h"
#include "core/shards/box_file.h"
#include "core/shards/decoded_boxes.h"

enum {
    DIRECT = 16 << 10,   /* runs of this length are read by themselves */
    TOGETHER = 64 << 10, /* bytes of shorter runs that are read at a time */
    KEPT = 16,
    ALIGN = 64
};

typedef struct placed_box { /* a box, in the order of the first elements */
    uint64_t first, end;    /* range of the tensor that the box spans, in bytes */
    uint64_t reach;         /* the highest end of this and all preceding boxes of the tensor */
    uint32_t row, box;      /* row of heft_index.assembled, one of its boxes */
    size_t found;           /* atomic: distance of the elements from the box, plus 1; 0: unknown */
} placed_box;

typedef struct kept_buffer {
    size_t is_taken; /* atomic */
    uint8_t *bytes;  /* TOGETHER bytes; NULL until they are needed */
} kept_buffer;

typedef struct assembled_source {
    heft_source base;
    const heft_file *f;
    placed_box *boxes; /* tensor by tensor */
    size_t bytes;      /* allocated for boxes */
    uint32_t count;
    kept_buffer kept[KEPT];
    heft_decoded_boxes *decoded; /* NULL: no box is compressed */
} assembled_source;

static const char purpose[] = "to assemble tensors";

static const heft_ix_assembled *row_at(const heft_index *x, uint32_t i)
{
    return (const heft_ix_assembled *)x->assembled.ptr + i;
}

/* ---- buffers ---- */

/* Take a buffer; NULL: all are taken. */
static kept_buffer *take_buffer(assembled_source *s)
{
    for (int i = 0; i < KEPT; i++)
        if (heft_atomic_publish_first(&s->kept[i].is_taken, 1))
            return &s->kept[i];
    return NULL;
}

/* ---- reading a box ---- */

typedef struct box_read { /* the elements of a box within [from, to) of the tensor */
    assembled_source *s;
    placed_box *placed;
    heft_box_runs runs;
    uint64_t size;     /* bytes of an element */
    uint64_t from, to; /* range of the tensor in bytes */
    uint64_t elements; /* global offset of the box's elements */
    uint8_t *dst;      /* byte `from` of the tensor */
    uint8_t *together;
    bool compares; /* a replica: compare with what was read */
    heft_error *err;
} box_read;

/* Return the offset in the tensor of run i, in bytes. */
static uint64_t run_begin(const box_read *r, uint64_t i)
{
    return heft_box_run_at(&r->runs, i) * r->size;
}

static uint64_t run_bytes(const box_read *r)
{
    return r->runs.run * r->size;
}

/* Return the number of runs that begin before byte `at` of the tensor. */
static uint64_t runs_before(const box_read *r, uint64_t at)
{
    uint64_t first = 0, end = r->runs.count;
    while (first < end) {
        uint64_t mid = first + (end - first) / 2;
        if (run_begin(r, mid) < at)
            first = mid + 1;
        else
            end = mid;
    }
    return first;
}

/* Return the number of runs that end before byte `at`, or there. */
static uint64_t runs_until(const box_read *r, uint64_t at)
{
    return at < run_bytes(r) ? 0 : runs_before(r, at - run_bytes(r) + 1);
}

/* The place of the elements does not change, so that threads may find it at the same time. */
static heft_status find_elements(box_read *r)
{
    const heft_file *f = r->s->f;
    heft_boxes b = heft_ix_boxes(&f->x, r->placed->row);
    uint64_t box = b.rows[r->placed->box].offset;
    size_t found = heft_atomic_load_published(&r->placed->found);
    if (heft_box_is_zstd(&b.rows[r->placed->box])) { /* found when the box is decoded */
        r->elements = box;
        return HEFT_OK;
    }
    if (found) {
        r->elements = box + (found - 1);
        return HEFT_OK;
    }
    HEFT_TRY(heft_box_find_elements(&r->elements, f, r->placed->row, r->placed->box, r->err));
    if (r->elements - box < SIZE_MAX)
        heft_atomic_publish(&r->placed->found, (size_t)(r->elements - box) + 1);
    return HEFT_OK;
}

static heft_status read_elements(const box_read *r, uint64_t at, uint8_t *buf, size_t len)
{
    const heft_file *f = r->s->f;
    const heft_ix_box *box = heft_ix_boxes(&f->x, r->placed->row).rows + r->placed->box;
    if (heft_box_is_zstd(box))
        return heft_decoded_boxes_read(r->s->decoded, (uint32_t)(r->placed - r->s->boxes),
                                       r->placed->row, r->placed->box, at, buf, len, r->err);
    if (heft_box_holds(box) == HEFT_BOX_PART) {
        uint32_t number = heft_global_offset_file(&f->x, box->offset);
        const heft_file *model = f->opened_shards[number - 1].model;
        return heft_part_read(buf, model, (uint32_t)box->length, at, len, r->err);
    }
    return heft_file_read_stored(r->s->f, r->elements + at, buf, len, r->err);
}

/* Refuse a replica whose byte `at` differs. */
static heft_status report_difference(const box_read *r, uint64_t at)
{
    const heft_index *x = &r->s->f->x;
    heft_error_plain(r->err, HEFT_E_FORMAT,
                     "tensor %q: the files have different copies of one piece, which should be "
                     "equal",
                     heft_ix_name(x, row_at(x, r->placed->row)->tensor));
    return heft_file_error_at(r->s->f, r->elements + at, HEFT_E_FORMAT, r->err);
}

/* Compare bytes of the box with bytes that were read. */
static heft_status compare(const box_read *r, uint64_t at, const uint8_t *with, size_t len)
{
    for (size_t n; len; at += n, with += n, len -= n) {
        n = len < TOGETHER ? len : TOGETHER;
        HEFT_TRY(read_elements(r, at, r->together, n));
        if (memcmp(r->together, with, n))
            return report_difference(r, at);
    }
    return HEFT_OK;
}

/* Read `count` runs from run i on, which lie within the range, and copy them to their places. */
static heft_status read_together(const box_read *r, uint64_t i, uint64_t count)
{
    size_t bytes = (size_t)run_bytes(r);
    HEFT_TRY(read_elements(r, i * bytes, r->together, (size_t)count * bytes));
    for (uint64_t k = 0; k < count; k++) {
        uint8_t *dst = r->dst + (run_begin(r, i + k) - r->from);
        if (r->compares && memcmp(dst, r->together + k * bytes, bytes))
            return report_difference(r, (i + k) * bytes);
        memcpy(dst, r->together + k * bytes, bytes);
    }
    return HEFT_OK;
}

/* Read the part of run i, which begins at byte `begin`, that lies within the range. */
static heft_status read_run(const box_read *r, uint64_t i, uint64_t begin)
{
    uint64_t bytes = run_bytes(r), end = begin + bytes;
    uint64_t from = begin < r->from ? r->from : begin, to = end < r->to ? end : r->to;
    uint64_t at = i * bytes + (from - begin);
    uint8_t *dst = r->dst + (from - r->from);
    return r->compares ? compare(r, at, dst, (size_t)(to - from))
                       : read_elements(r, at, dst, (size_t)(to - from));
}

static heft_status read_runs(const box_read *r)
{
    uint64_t whole = runs_until(r, r->to), end = runs_before(r, r->to);
    uint64_t most = run_bytes(r) < DIRECT && r->together ? heft_div(TOGETHER, run_bytes(r)) : 1;
    for (uint64_t i = runs_until(r, r->from), n; i < end; i += n) {
        uint64_t begin = run_begin(r, i), left = whole - i;
        n = begin < r->from || i >= whole ? 1 : left < most ? left : most;
        HEFT_TRY(n > 1 ? read_together(r, i, n) : read_run(r, i, begin));
    }
    return HEFT_OK;
}

static heft_status read_box(box_read *r)
{
    const heft_allocator *al = r->s->f->host->allocator;
    HEFT_TRY(find_elements(r));
    if (!r->compares && (run_bytes(r) >= DIRECT || r->runs.count < 2))
        return read_runs(r);
    kept_buffer *kept = take_buffer(r->s), own = { .bytes = NULL }, *buffer = kept ? kept : &own;
    if (!buffer->bytes)
        buffer->bytes = heft_alloc(al, TOGETHER, ALIGN);
    r->together = buffer->bytes;
    heft_status st = r->compares && !r->together ? heft_error_no_memory(r->err, purpose)
                                                 : read_runs(r);
    heft_free(al, own.bytes, TOGETHER, ALIGN);
    if (kept)
        heft_atomic_publish(&kept->is_taken, 0);
    return st;
}

/* ---- boxes in a range ---- */

/* Return the first box of the tensor, among boxes [begin, end), that may reach past `from`. */
static uint32_t first_box(const assembled_source *s, uint32_t begin, uint32_t end, uint64_t from)
{
    heft_bisect b = { .first = begin, .end = end };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, s->boxes[b.mid].reach <= from);
    return b.first;
}

/* Return what is read of a box for bytes [from, to) of the tensor. */
static box_read read_of(assembled_source *s, placed_box *p, uint64_t from, uint64_t to)
{
    const heft_index *x = &s->f->x;
    heft_boxes b = heft_ix_boxes(x, p->row);
    uint32_t size = heft_dtype_size(heft_ix_row(x, row_at(x, p->row)->tensor)->dtype);
    return (box_read){ .s = s,
                       .placed = p,
                       .runs = heft_box_runs_of(&b, p->box),
                       .size = size,
                       .from = from,
                       .to = to };
}

/* Announce to the file of a box the bytes that will be read of it. */
static void announce(const box_read *r)
{
    enum { HEADER = 4 << 10 }; /* a guess, until the elements in the box are found */
    const heft_file *f = r->s->f;
    heft_boxes b = heft_ix_boxes(&f->x, r->placed->row);
    const heft_ix_box *box = b.rows + r->placed->box;
    if (heft_box_holds(box) == HEFT_BOX_PART)
        return;
    size_t found = heft_atomic_load_published(&r->placed->found);
    uint64_t begin = runs_until(r, r->from) * run_bytes(r), skip = found ? found - 1 : 0;
    uint64_t end = runs_before(r, r->to) * run_bytes(r) + (found ? 0 : HEADER);
    begin = begin + skip < box->length ? begin + skip : box->length;
    end = end + skip < box->length ? end + skip : box->length;
    heft_file_announce(f, box->offset + begin, end - begin);
}

typedef struct row_range { /* the boxes of a tensor */
    const heft_ix_assembled *a;
    uint32_t first, end; /* in assembled_source.boxes */
} row_range;

static row_range boxes_of(const assembled_source *s, uint32_t row)
{
    const heft_ix_assembled *a = row_at(&s->f->x, row);
    return (row_range){ a, a->first_box, a->first_box + a->box_count };
}

/* Return a source of boxes, one that has an executor because its requests take long; or NULL. */
static const heft_source *slow_source(const heft_file *f)
{
    const heft_source *s = heft_file_source(f, f->opened_shard_count > 1); /* a shard, or f's own */
    return s && HEFT_HAS(s->ops, executor) ? s : NULL;
}

/* Boxes in a range are announced, or they are read: first others than replicas, and then
 * replicas, which are compared with what was read. */
typedef enum pass { ANNOUNCE, READ, COMPARE } pass;

static heft_status visit_boxes(assembled_source *s, uint32_t row, uint64_t from, uint64_t to,
                               uint8_t *dst, pass step, heft_error *err)
{
    row_range all = boxes_of(s, row);
    heft_boxes b = heft_ix_boxes(&s->f->x, row);
    heft_status st = HEFT_OK;
    for (uint32_t i = first_box(s, all.first, all.end, from); i < all.end && !st; i++) {
        placed_box *p = &s->boxes[i];
        if (p->first >= to)
            break;
        bool is_replica = heft_box_is_replica(&b.rows[p->box]);
        if (p->end <= from || (step != ANNOUNCE && is_replica != (step == COMPARE)))
            continue;
        box_read r = read_of(s, p, from, to);
        r.dst = dst;
        r.err = err;
        r.compares = is_replica;
        if (step == ANNOUNCE)
            announce(&r);
        else
            st = read_box(&r);
    }
    return st;
}

/* Announce, or read to dst, bytes [from, to) of a tensor. */
static heft_status visit(assembled_source *s, uint32_t row, uint64_t from, uint64_t to,
                         uint8_t *dst, heft_error *err)
{
    if (!dst)
        return visit_boxes(s, row, from, to, NULL, ANNOUNCE, err);
    HEFT_TRY(visit_boxes(s, row, from, to, dst, READ, err));
    return visit_boxes(s, row, from, to, dst, COMPARE, err);
}

/* Return the row of the tensor that has the byte of the source. */
static uint32_t row_of(const heft_index *x, uint64_t offset)
{
    heft_bisect b = { .end = x->assembled.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, row_at(x, b.mid)->start + row_at(x, b.mid)->bytes <= offset);
    return b.first;
}

/* ---- the source ---- */

static heft_status for_range(assembled_source *s, uint64_t offset, uint8_t *dst, uint64_t len,
                             heft_error *err)
{
    const heft_index *x = &s->f->x;
    heft_status st = HEFT_OK;
    for (uint32_t row = row_of(x, offset); len && !st; row++) {
        const heft_ix_assembled *a = row_at(x, row);
        uint64_t from = offset - a->start, left = a->bytes - from, n = left < len ? left : len;
        st = n ? visit(s, row, from, from + n, dst, err) : HEFT_OK;
        dst = dst ? dst + n : dst;
        offset += n;
        len -= n;
    }
    return st;
}

static heft_status read_assembled(heft_source *base, uint64_t offset, void *buf, size_t len,
                                  heft_error *err)
{
    assembled_source *s = (assembled_source *)base;
    heft_error own;
    if (slow_source(s->f))
        (void)for_range(s, offset, NULL, len, err);
    return for_range(s, offset, buf, len, err ? err : heft_error_begin(err, &own));
}

static void will_need(heft_source *base, uint64_t offset, uint64_t len)
{
    (void)for_range((assembled_source *)base, offset, NULL, len, NULL);
}

static const heft_executor *executor(const heft_source *base)
{
    const heft_source *s = slow_source(((const assembled_source *)base)->f);
    return s ? s->ops->executor(s) : NULL;
}

static void close_assembled(heft_source *base)
{
    assembled_source *s = (assembled_source *)base;
    const heft_allocator *al = s->f->host->allocator;
    for (int i = 0; i < KEPT; i++)
        heft_free(al, s->kept[i].bytes, TOGETHER, ALIGN);
    heft_decoded_boxes_free(s->decoded);
    heft_free(al, s->boxes, s->bytes, ALIGN);
    heft_free(al, s, sizeof *s, ALIGN);
}

static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                     .read = read_assembled,
                                     .will_need = will_need,
                                     .close = close_assembled,
                                     .executor = executor };

/* ---- the order of the boxes ---- */

static void place_box(assembled_source *s, placed_box *p, uint32_t row, uint32_t box)
{
    *p = (placed_box){ .row = row, .box = box };
    box_read r = read_of(s, p, 0, 0);
    if (!r.runs.count || !r.runs.run) /* an empty box is never read */
        return;
    p->first = run_begin(&r, 0);
    p->end = run_begin(&r, r.runs.count - 1) + run_bytes(&r);
}

static bool is_first(const void *ctx, uint32_t a, uint32_t b)
{
    const placed_box *boxes = ctx;
    return boxes[a].first < boxes[b].first;
}

/* Sort the boxes of a tensor by their first elements. */
static void place_row(assembled_source *s, uint32_t row, placed_box *scratch, uint32_t *order)
{
    row_range all = boxes_of(s, row);
    uint32_t n = all.end - all.first;
    uint64_t reach = 0;
    for (uint32_t i = 0; i < n; i++)
        place_box(s, &scratch[i], row, i);
    heft_sort_numbers(order, n, is_first, scratch);
    for (uint32_t i = 0; i < n; i++) {
        placed_box *p = &s->boxes[all.first + i];
        *p = scratch[order[i]];
        reach = p->end > reach ? p->end : reach;
        p->reach = reach;
    }
}

static heft_status place_boxes(assembled_source *s, heft_error *err)
{
    const heft_index *x = &s->f->x;
    const heft_allocator *al = s->f->host->allocator;
    uint32_t most = 0;
    for (uint32_t i = 0; i < x->assembled.len; i++)
        most = row_at(x, i)->box_count > most ? row_at(x, i)->box_count : most;
    size_t bytes = ((size_t)most + 1) * sizeof(placed_box);
    size_t order_bytes = 2 * ((size_t)most + 1) * sizeof(uint32_t);
    placed_box *scratch = heft_alloc(al, bytes, ALIGN);
    uint32_t *order = heft_alloc(al, order_bytes, ALIGN);
    for (uint32_t i = 0; scratch && order && i < x->assembled.len; i++)
        place_row(s, i, scratch, order);
    bool has_memory = scratch && order;
    heft_free(al, scratch, bytes, ALIGN);
    heft_free(al, order, order_bytes, ALIGN);
    return has_memory ? HEFT_OK : heft_error_no_memory(err, purpose);
}

/* Prepare for boxes that are compressed, if there are any. */
static heft_status begin_decoding(assembled_source *s, heft_error *err)
{
    const heft_ix_box *boxes = s->f->x.boxes.ptr;
    bool is_needed = false;
    for (uint32_t i = 0; i < s->count && !is_needed; i++)
        is_needed = heft_box_is_zstd(&boxes[i]);
    s->decoded = is_needed ? heft_decoded_boxes_new(s->f) : NULL;
    return is_needed && !s->decoded ? heft_error_no_memory(err, purpose) : HEFT_OK;
}

heft_status heft_assembled_source(heft_source **out, const heft_file *f, heft_error *err)
{
    const heft_index *x = &f->x;
    const heft_ix_assembled *last = row_at(x, x->assembled.len - 1);
    assembled_source *s = heft_alloc(f->host->allocator, sizeof *s, ALIGN);
    *out = NULL;
    if (!s)
        return heft_error_no_memory(err, purpose);
    *s = (assembled_source){ .base = { &ops, last->start + last->bytes }, .f = f };
    s->count = x->boxes.len;
    s->bytes = ((size_t)s->count + 1) * sizeof *s->boxes;
    s->boxes = heft_alloc(f->host->allocator, s->bytes, ALIGN);
    heft_status st = s->boxes ? place_boxes(s, err) : heft_error_no_memory(err, purpose);
    if (!st)
        st = begin_decoding(s, err);
    if (st)
        close_assembled(&s->base);
    else
        *out = &s->base;
    return st;
}
