/* map_source.c - a source that gathers the elements of rearranged tensors when they are read. */
#include "base/bisect.h"
#include "base/checked_math.h"
#include "base/error.h"
#include "base/sort.h"
#include "core/read/strided.h"
#include "map/map_rules.h"
#include "model/cast_batch.h"
#include "model/float.h"

enum {
    DIRECT = 16 << 10, /* runs of this length are read, not copied from mapped pages */
    ALIGN = 64
};

/* ---- results ---- */

static heft_status no_memory(heft_error *err)
{
    return heft_error_no_memory(err, "to rearrange tensors");
}

/* Give the axes their steps in the result, and sort them, the longest step first. */
static void place_axes(heft_map_piece *p, const heft_map_value *v)
{
    uint64_t unit[HEFT_MAP_RANK] = { 1 }, step = 1;
    for (uint32_t d = v->rank; d--;) {
        unit[d] = step;
        step *= v->dims[d];
    }
    for (uint32_t i = 0; i < p->axes; i++) {
        heft_map_axis a = p->axis[i];
        uint32_t k = i;
        a.step *= unit[a.dim];
        for (; k && p->axis[k - 1].step < a.step; k--)
            p->axis[k] = p->axis[k - 1];
        p->axis[k] = a;
    }
    for (uint32_t d = 0; d < v->rank; d++) /* start[0] becomes the element in the result */
        p->start[0] = d ? p->start[0] + p->start[d] * unit[d] : p->start[0] * unit[0];
}

/* Leave out axes of one step, and join those that continue each other in the input and in the
 * result. */
static void join_axes(heft_map_piece *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->axes; i++) {
        heft_map_axis a = p->axis[i], *before = n ? &p->axis[n - 1] : NULL;
        if (a.count == 1)
            continue;
        bool continues = before && before->stride == a.count * a.stride &&
                         before->step == a.count * a.step;
        if (continues)
            *before = (heft_map_axis){ before->count * a.count, a.step, a.stride, 0 };
        else
            p->axis[n++] = a;
    }
    p->axes = n;
}

/* Append the numbers of a piece; its last axes that fill consecutive units are `inner`. */
static bool add_box(heft_map_gather *g, const heft_map_piece *p)
{
    heft_map_box b = { .begin = p->start[0],
                       .first = p->first,
                       .part = p->part,
                       .numbers = g->numbers.len,
                       .axes = (uint8_t)p->axes };
    uint64_t filled = 1, extent = 0;
    for (uint32_t i = p->axes; i-- && p->axis[i].step == filled; b.inner++)
        filled *= p->axis[i].count;
    for (uint32_t i = 0; i < p->axes; i++)
        extent += (p->axis[i].count - 1) * p->axis[i].step;
    b.end = b.begin + extent + 1;
    if (!heft_vec_reserve(&g->mem, &g->numbers, 3 * (uint64_t)p->axes, sizeof(uint64_t)))
        return false;
    uint64_t *to = (uint64_t *)g->numbers.ptr + b.numbers;
    for (uint32_t i = 0; i < p->axes; i++) {
        to[i] = p->axis[i].count;
        to[p->axes + i] = p->axis[i].stride;
        to[2 * p->axes + i] = p->axis[i].step;
    }
    g->numbers.len += 3 * p->axes;
    return heft_vec_add(&g->mem, &g->boxes, &b, sizeof b);
}

static bool begins_before(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_map_box *boxes = ctx;
    return boxes[a].begin < boxes[b].begin;
}

/* Sort the boxes of a result, and find how far those up to each reach. */
static bool sort_boxes(heft_map_gather *g, uint32_t first)
{
    uint32_t count = g->boxes.len - first;
    heft_map_box *boxes = (heft_map_box *)g->boxes.ptr + first;
    size_t bytes = (size_t)count * (sizeof *boxes + 2 * sizeof(uint32_t));
    heft_map_box *copy = count > 1 ? heft_mem_alloc(&g->mem, bytes) : NULL;
    if (count > 1 && !copy)
        return false;
    if (copy) {
        uint32_t *order = (uint32_t *)(copy + count);
        memcpy(copy, boxes, count * sizeof *boxes);
        heft_sort_numbers(order, count, begins_before, copy);
        for (uint32_t i = 0; i < count; i++)
            boxes[i] = copy[order[i]];
        heft_mem_free(&g->mem, copy, bytes);
    }
    for (uint64_t reach = 0, i = 0; i < count; i++) {
        reach = boxes[i].end > reach ? boxes[i].end : reach;
        boxes[i].reach = reach;
    }
    return true;
}

/* Return where the next result begins in the source. */
static uint64_t end_of_results(const heft_map_gather *g)
{
    const heft_map_result *all = g->results.ptr;
    uint32_t count = g->results.len;
    return count ? all[count - 1].start + all[count - 1].bytes : 0;
}

heft_status heft_map_add_result(heft_map_gather *g, const heft_map_work *w, const heft_map_value *v,
                                heft_error *err)
{
    const heft_dtype_info *type = heft_dtype_get(v->dtype);
    heft_map_result r = {
        .first_box = g->boxes.len, .dtype = v->dtype, .as = v->as, .added = (int32_t)v->added
    };
    uint64_t elements, filled = 0;
    r.unit = (uint8_t)(type->block_elems > 1 ? 1 : type->block_bytes);
    r.start = end_of_results(g);
    if (!heft_product(&elements, v->dims, v->rank) ||
        !heft_mul(&r.bytes, elements, v->as == v->dtype ? r.unit : sizeof(float)) ||
        r.bytes >> HEFT_GLOBAL_OFFSET_BITS || (r.start + r.bytes) >> HEFT_GLOBAL_OFFSET_BITS)
        return heft_error_plain(err, HEFT_E_LIMIT, "the rearranged tensors exceed 2^%U bytes",
                                (uint64_t)HEFT_GLOBAL_OFFSET_BITS);
    for (uint32_t i = 0; i < v->pieces && elements; i++) {
        heft_map_piece p = ((const heft_map_piece *)w->pieces.ptr)[v->first + i];
        uint64_t count = 1;
        for (uint32_t k = 0; k < p.axes; k++)
            count *= p.axis[k].count;
        filled += count;
        place_axes(&p, v);
        join_axes(&p);
        if (count && !add_box(g, &p))
            return no_memory(err);
    }
    r.boxes = g->boxes.len - r.first_box;
    r.has_gaps = filled != elements;
    return sort_boxes(g, r.first_box) && heft_vec_add(&g->mem, &g->results, &r, sizeof r)
               ? HEFT_OK
               : no_memory(err);
}

heft_status heft_map_add_vector(heft_map_gather *g, const float *values, uint32_t count,
                                heft_error *err)
{
    heft_map_result r = { .start = end_of_results(g),
                          .bytes = (uint64_t)count * sizeof *values,
                          .dtype = HEFT_F32,
                          .as = HEFT_F32,
                          .memory = values };
    return heft_vec_add(&g->mem, &g->results, &r, sizeof r) ? HEFT_OK : no_memory(err);
}

void heft_map_gather_free(heft_map_gather *g)
{
    heft_vec_free(&g->mem, &g->results, sizeof(heft_map_result));
    heft_vec_free(&g->mem, &g->boxes, sizeof(heft_map_box));
    heft_vec_free(&g->mem, &g->numbers, sizeof(uint64_t));
}

/* ---- reading a box ---- */

typedef struct box_read { /* bytes [from, to) of a result, gathered units */
    const heft_file *f;
    const heft_map_box *b;
    const uint64_t *counts, *strides, *steps; /* one for each axis */
    uint64_t from, to;
    uint32_t unit;
    uint32_t outer; /* axes that are stepped through */
    uint64_t run;   /* units that the other axes fill */
    heft_strided_reader reader;
    uint64_t at[HEFT_MAP_AXES]; /* position on the outer axes */
    heft_error *err;
} box_read;

static box_read read_of(const heft_map_gather *g, const heft_map_result *t, const heft_map_box *b)
{
    const uint64_t *numbers = (const uint64_t *)g->numbers.ptr + b->numbers;
    box_read r = { .f = g->f, .b = b, .unit = t->unit, .run = 1 };
    r.counts = numbers;
    r.strides = numbers + b->axes;
    r.steps = numbers + 2 * (size_t)b->axes;
    r.outer = (uint32_t)(b->axes - b->inner);
    for (uint32_t i = r.outer; i < b->axes; i++)
        r.run *= r.counts[i];
    r.reader.f = g->f;
    r.reader.row = *heft_ix_part_row_at(&g->f->x, b->part);
    if (t->unit == 1 && t->dtype < HEFT_DTYPES)
        r.reader.row.dtype = HEFT_U8;
    const heft_ix_part_row *row = &r.reader.row;
    /* Long rows are read: faults of mapped pages cost more. */
    bool is_long = b->inner && r.strides[b->axes - 1] == 1 &&
                   r.counts[b->axes - 1] * t->unit >= DIRECT;
    r.reader.content = is_long ? NULL : heft_file_map(g->f, row->offset, row->stored);
    bool is_dense = !b->inner || (b->inner == 1 && r.strides[r.outer] == 1);
    r.reader.strides = is_dense ? NULL : r.strides + r.outer;
    r.reader.dims = r.counts + r.outer;
    r.reader.rank = b->inner;
    return r;
}

/* Read the bytes of one run, which begins at byte `begin` of the result and at `unit` of the input,
 * that are within the range. */
static heft_status read_run(box_read *r, uint64_t begin, uint64_t first, uint8_t *dst)
{
    const heft_ix_view *v = heft_ix_view_of(&r->f->x, r->b->part);
    uint64_t end = begin + r->run * r->unit;
    uint64_t from = begin < r->from ? r->from : begin, to = end < r->to ? end : r->to;
    if (from >= to)
        return HEFT_OK;
    r->reader.first = (v ? v->first : 0) + first * r->unit;
    uint8_t *out = dst + (from - r->from);
    bool is_copy = !r->reader.strides && !(r->reader.row.flags & HEFT_P_RESTORED);
    if (is_copy && to - from >= DIRECT)
        return heft_file_read_stored(r->f, r->reader.row.offset + r->reader.first + (from - begin),
                                     out, (size_t)(to - from), r->err);
    if (!is_copy || !r->reader.content)
        return heft_strided_reader_read(&r->reader, from - begin, out, (size_t)(to - from), r->err);
    memcpy(out, r->reader.content + r->reader.first + (from - begin), (size_t)(to - from));
    return HEFT_OK;
}

/* Find the first run that may reach into the range. */
static void find_first(box_read *r)
{
    uint64_t begin = r->b->begin * r->unit, left = 0;
    if (r->from > begin)
        left = heft_div(r->from - begin, r->unit);
    for (uint32_t i = 0; i < r->outer; i++) {
        uint64_t step = heft_div(left, r->steps[i]);
        r->at[i] = step < r->counts[i] ? step : r->counts[i] - 1;
        left -= r->at[i] * r->steps[i];
    }
}

static bool step_on(box_read *r)
{
    for (uint32_t i = r->outer; i--;) {
        if (++r->at[i] < r->counts[i])
            return true;
        r->at[i] = 0;
    }
    return false;
}

static heft_status read_box(box_read *r, uint8_t *dst)
{
    find_first(r);
    do {
        uint64_t begin = r->b->begin, first = r->b->first;
        for (uint32_t i = 0; i < r->outer; i++) {
            begin += r->at[i] * r->steps[i];
            first += r->at[i] * r->strides[i];
        }
        if (begin * r->unit >= r->to)
            return HEFT_OK;
        HEFT_TRY(read_run(r, begin * r->unit, first, dst));
    } while (step_on(r));
    return HEFT_OK;
}

/* ---- reading a result ---- */

/* Gather bytes [from, to) of a result in the element type of its inputs. */
static heft_status gather(const heft_map_gather *g, const heft_map_result *t, uint64_t from,
                          uint64_t to, uint8_t *dst, heft_error *err)
{
    if (t->has_gaps)
        memset(dst, 0, (size_t)(to - from));
    if (!t->boxes)
        return HEFT_OK;
    const heft_map_box *all = (const heft_map_box *)g->boxes.ptr + t->first_box;
    heft_bisect b = { .end = t->boxes };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, all[b.mid].reach * t->unit <= from);
    for (uint32_t i = b.first; i < t->boxes && all[i].begin * t->unit < to; i++) {
        box_read r = read_of(g, t, &all[i]);
        r.from = from;
        r.to = to;
        r.err = err;
        if (all[i].end * t->unit > from)
            HEFT_TRY(read_box(&r, dst));
    }
    return heft_file_count_read(g->f, all->part, to - from, err);
}

/* Gather bytes [from, to) as another element type, or with a constant added: in f32, with one
 * rounding. */
static heft_status compute(const heft_map_gather *g, const heft_map_result *t, uint64_t from,
                           uint64_t to, uint8_t *dst, heft_error *err)
{
    uint32_t size = heft_dtype_size(t->as);
    while (from < to) {
        uint8_t in[HEFT_CAST_BATCH * sizeof(float)], out[HEFT_CAST_BATCH * sizeof(float)];
        uint32_t numbers[HEFT_CAST_BATCH];
        uint64_t first = heft_div(from, size), skip = from - first * size;
        uint64_t left = heft_div(to - 1, size) + 1 - first;
        size_t n = left < HEFT_CAST_BATCH ? (size_t)left : HEFT_CAST_BATCH;
        HEFT_TRY(gather(g, t, first * t->unit, (first + n) * t->unit, in, err));
        heft_cast_batch_load(numbers, t->dtype, in, n);
        for (size_t i = 0; i < n && t->added; i++)
            numbers[i] = heft_f32_bits(heft_f32_of(numbers[i]) + (float)t->added);
        heft_cast_batch_store(out, t->as, numbers, n);
        size_t bytes = n * size - (size_t)skip;
        bytes = bytes < to - from ? bytes : (size_t)(to - from);
        memcpy(dst, out + skip, bytes);
        dst += bytes;
        from += bytes;
    }
    return HEFT_OK;
}

/* ---- the source ---- */

typedef struct map_source {
    heft_source base;
    heft_map_gather g;
} map_source;

/* Copy bytes of numbers in memory, which are little-endian in the source. */
static void copy_memory(const float *values, uint64_t from, uint8_t *to, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint64_t at = from + i;
        to[i] = (uint8_t)(heft_f32_bits(values[at / sizeof *values]) >> 8 * (at % sizeof *values));
    }
}

static heft_status read_results(const heft_map_gather *g, uint64_t offset, uint8_t *to, size_t len,
                                heft_error *err)
{
    const heft_map_result *all = g->results.ptr;
    heft_bisect b = { .end = g->results.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, all[b.mid].start + all[b.mid].bytes <= offset);
    heft_status st = HEFT_OK;
    for (const heft_map_result *t = all + b.first; len && !st; t++) {
        uint64_t from = offset - t->start, left = t->bytes - from;
        size_t n = left < len ? (size_t)left : len;
        bool is_plain = t->as == t->dtype && !t->added;
        if (t->memory)
            copy_memory(t->memory, from, to, n);
        else if (n)
            st = (is_plain ? gather : compute)(g, t, from, from + n, to, err);
        to += n;
        offset += n;
        len -= n;
    }
    return st;
}

static heft_status read_gathered(heft_source *base, uint64_t offset, void *buf, size_t len,
                                 heft_error *err)
{
    const heft_map_gather *g = &((map_source *)base)->g;
    heft_file_enter(g->f); /* the inputs may be mapped */
    return heft_file_leave_after(g->f, read_results(g, offset, buf, len, err), err);
}

static void close_source(heft_source *base)
{
    map_source *s = (map_source *)base;
    const heft_allocator *al = s->g.mem.al;
    heft_map_gather_free(&s->g);
    heft_free(al, s, sizeof *s, ALIGN);
}

static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                     .read = read_gathered,
                                     .close = close_source };

heft_status heft_map_source(heft_source **out, heft_map_gather *g, heft_error *err)
{
    uint64_t size = end_of_results(g);
    map_source *s = heft_alloc(g->mem.al, sizeof *s, ALIGN);
    *out = NULL;
    if (!s)
        return no_memory(err);
    *s = (map_source){ .g = *g };
    *g = (heft_map_gather){ .f = g->f, .mem = g->mem };
    s->base.ops = &ops;
    s->base.size = size;
    *out = &s->base;
    return HEFT_OK;
}
