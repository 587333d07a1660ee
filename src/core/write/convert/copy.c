/* copy.c - cut the target into spans that workers fill in any order.  A worker assembles a span
 * in a buffer that stays in cache, and writes the buffer at the offset of the span. */
#include "core/write/convert/copy.h"

#include "base/bisect.h"
#include "core/write/plan/plan.h"

enum {
    BLOCK = 4096, /* block size of nearly every file system; the call fails with larger blocks */
    MIN_LENGTH = 64 << 10 /* copying less is as fast */
};

/* ---- eligible parts ---- */

/* Return true if a part is copied unchanged, and no checksum needs the bytes. */
static bool can_reflink(const heft_copy_context *c, uint32_t part)
{
    const heft_origin *o = &c->origins[part];
    const heft_ix_part_row *from = heft_ix_part_row_at(&c->in->x, o->part);
    if (heft_planner_digest_of(c->p, part) || c->p->written.digest_count ||
        c->ledger->crcs.digest_count || heft_ledger_in_order(c->ledger, o->part) != HEFT_NONE)
        return false;
    return !o->layout_target && !o->transposed && heft_ix_is_plain(from) &&
           o->dtype == heft_ix_part_row_at(&c->p->x, part)->dtype;
}

/* Return the whole blocks of a part in the target; false: too few, or not aligned like the
 * source. */
static bool whole_blocks(heft_range *out, uint64_t to, uint64_t from, uint64_t length)
{
    uint64_t skip = (0 - to) & (BLOCK - 1);
    if ((to ^ from) & (BLOCK - 1) || length < MIN_LENGTH)
        return false;
    *out = (heft_range){ to + skip, (length - skip) & ~(uint64_t)(BLOCK - 1) };
    return true;
}

/* Cut the range to the whole blocks of the range that this copy writes; false: too few remain. */
static bool cut_to_share(heft_range *r, const heft_range *only)
{
    if (!only)
        return true;
    uint64_t from = (only->offset + BLOCK - 1) & ~(uint64_t)(BLOCK - 1);
    uint64_t to = (only->offset + only->length) & ~(uint64_t)(BLOCK - 1),
             end = r->offset + r->length;
    from = from > r->offset ? from : r->offset;
    to = to < end ? to : end;
    *r = (heft_range){ from, from < to ? to - from : 0 };
    return r->length >= MIN_LENGTH;
}

/* ---- the call ---- */

/* false: the file system does not support the call. */
static bool reflink_range(const heft_copy_context *c, uint32_t part, heft_range r)
{
    const heft_file *f = c->in;
    const heft_ix_part_row *to = heft_ix_part_row_at(&c->p->x, part);
    const heft_ix_part_row *from = heft_ix_part_row_at(&f->x, c->origins[part].part);
    uint32_t number = heft_global_offset_file(&f->x, from->offset);
    heft_source *s = number ? f->opened_shards[number - 1].source : f->source;
    uint64_t at = heft_global_offset_local(&f->x, from->offset) + (r.offset - to->offset);
    return s && c->sink->ops->reflink(c->sink, r.offset, s, at, r.length);
}

/* Reflink eligible parts of file_order, which is sorted by offset in the target.  *reflinked: the
 * ranges of the target that are done, heft_range, ascending. */
static heft_status reflink_parts(const heft_copy_context *c, const uint32_t *file_order,
                                 uint32_t count, heft_memory *m, heft_vec *reflinked,
                                 heft_error *err)
{
    if (!HEFT_HAS(c->sink->ops, reflink))
        return HEFT_OK;
    for (uint32_t i = 0; i < count && !heft_progress_halted(c->progress); i++) {
        const heft_ix_part_row *to = heft_ix_part_row_at(&c->p->x, file_order[i]);
        uint64_t from = heft_ix_part_row_at(&c->in->x, c->origins[file_order[i]].part)->offset;
        heft_range r;
        if (!can_reflink(c, file_order[i]) ||
            !whole_blocks(&r, to->offset, heft_global_offset_local(&c->in->x, from), to->stored) ||
            !cut_to_share(&r, c->only))
            continue;
        heft_range *range = heft_vec_push(m, reflinked, sizeof *range);
        if (!range)
            return heft_error_no_memory(err, "to plan the copy");
        *range = r;
        if (!reflink_range(c, file_order[i], r)) {
            reflinked->len--;
            break;
        }
        HEFT_TRY(heft_file_count_read(c->in, c->origins[file_order[i]].part, r.length, err));
        heft_progress_add(c->progress, r.length);
    }
    return HEFT_OK;
}

enum {
    SPAN = 4 << 20,     /* approximate bytes per unit of work */
    BUFFER = 256 << 10, /* bytes read, converted and written while in cache */
    AHEAD = 64 << 20,   /* bytes of the target whose source bytes are announced in advance */
    MIN_ANNOUNCED = 256 << 10,
    NEAR = 64 << 10 /* bytes between parts that are announced together */
};

typedef struct copy_job {
    const heft_copy_context *c;
    const uint32_t *file_order; /* parts sorted by offset */
    uint32_t order_count;
    heft_vec spans;     /* heft_range: ranges of the target to write */
    heft_vec reflinked; /* heft_range: ranges of the target that are reflinked */
    heft_memory mem;
} copy_job;

typedef struct worker {
    const copy_job *job;
    heft_part_source source;
    uint8_t *buf;
} worker;

static const heft_ix_part_row *part_at(const copy_job *c, uint32_t i)
{
    return heft_ix_part_row_at(&c->c->p->x, c->file_order[i]);
}

static uint64_t part_end(const copy_job *c, uint32_t i)
{
    return part_at(c, i)->offset + part_at(c, i)->stored;
}

/* Return the index of the first part that ends after `at`. */
static uint32_t first_part_after(const copy_job *c, uint64_t at)
{
    heft_bisect b = { .end = c->order_count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, part_end(c, b.mid) <= at);
    return b.first;
}

/* ---- spans ---- */

/* Cut [from, to) at multiples of SPAN; where a part must stay whole, cut at the end of that part
 * instead. */
static heft_status cut_spans(copy_job *c, uint64_t from, uint64_t to, heft_error *err)
{
    bool is_stream =
        !c->c->sink->ops->write_at; /* A stream is written in order, as a single span. */
    uint32_t i = first_part_after(c, from);
    for (uint64_t at = from; at < to;) {
        uint64_t end = is_stream ? to : (at / SPAN + 1) * SPAN;
        while (i < c->order_count && part_end(c, i) <= end)
            i++;
        if (i < c->order_count && part_at(c, i)->offset < end &&
            heft_part_is_whole(c->c, c->file_order[i]))
            end = part_end(c, i);
        heft_range *span = heft_vec_push(&c->mem, &c->spans, sizeof *span);
        if (!span)
            return heft_error_no_memory(err, "to plan the copy");
        end = end < to ? end : to;
        *span = (heft_range){ at, end - at };
        at = end;
    }
    return HEFT_OK;
}

/* Cut everything between the reflinked ranges into spans. */
static heft_status cut_unshared(copy_job *c, heft_error *err)
{
    const heft_range *reflinked = c->reflinked.ptr;
    const heft_range *only = c->c->only;
    uint64_t at = only ? only->offset : c->c->p->plan.header_bytes;
    uint64_t end = only ? at + only->length : c->c->p->plan.data_end;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < c->reflinked.len && !st; i++) {
        st = cut_spans(c, at, reflinked[i].offset, err);
        at = reflinked[i].offset + reflinked[i].length;
    }
    return st ? st : cut_spans(c, at, end, err);
}

/* Fill the buffer with bytes [at, at + len) of the target; *i: index of a part at or before
 * `at`. */
static heft_status assemble(worker *w, uint64_t at, size_t len, uint32_t *i)
{
    const copy_job *c = w->job;
    heft_planner *p = c->c->p;
    uint8_t *dst = w->buf;
    heft_status st = HEFT_OK;
    while (len && !st) {
        while (*i < c->order_count && part_end(c, *i) <= at)
            ++*i;
        const heft_ix_part_row *part = *i < c->order_count ? part_at(c, *i) : NULL;
        uint64_t run;
        if (part && part->offset <= at) {
            run = part->offset + part->stored - at;
            run = run < len ? run : len;
            st = heft_part_source_read(&w->source, c->file_order[*i], at - part->offset,
                                       (size_t)run, dst);
        } else {
            run = part && part->offset - at < len ? part->offset - at : len;
            st = heft_planner_record_header(p, c->file_order, c->order_count, *i, at, (size_t)run,
                                            dst, &w->source.err);
        }
        if (!st)
            st = heft_partial_crcs_add(&p->written, at, dst, (size_t)run, &w->source.err);
        dst += run;
        at += run;
        len -= (size_t)run;
    }
    return st;
}

/* If [from, to) begins with bytes that are written at the end (record headers with preceding
 * digests), return the number of these bytes; else shorten *n to end before the next record
 * header. */
static uint64_t deferred_bytes(const copy_job *job, uint64_t from, uint64_t to, uint32_t i,
                               size_t *n)
{
    if (!job->c->p->plan.needs_preceding_digests || !job->c->sink->ops->write_at)
        return 0;
    while (i < job->order_count && part_end(job, i) <= from)
        i++;
    uint64_t begins = i < job->order_count ? part_at(job, i)->offset : to;
    if (begins > from)
        return (begins < to ? begins : to) - from;
    uint64_t ends = part_end(job, i);
    *n = ends - from < *n ? (size_t)(ends - from) : *n;
    return 0;
}

static heft_status copy_span(worker *w, uint64_t from, uint64_t to)
{
    const heft_copy_context *c = w->job->c;
    uint32_t i = first_part_after(w->job, from);
    heft_status st = HEFT_OK;
    while (from < to && !st && !heft_progress_halted(c->progress)) {
        size_t n = to - from < BUFFER ? (size_t)(to - from) : BUFFER;
        uint64_t later = deferred_bytes(w->job, from, to, i, &n);
        if (later) {
            heft_progress_add(c->progress, later);
            from += later;
            continue;
        }
        st = assemble(w, from, n, &i);
        if (!st)
            st = heft_sink_put(c->sink, from, w->buf, n, &w->source.err);
        heft_progress_add(c->progress, n);
        from += n;
    }
    return st;
}

/* Announce source bytes, unless they are in memory or few. */
static void announce_run(const heft_file *f, heft_range run)
{
    const heft_source *s = heft_file_source(f, heft_global_offset_file(&f->x, run.offset));
    if (s && !s->ops->map && run.length >= MIN_ANNOUNCED)
        heft_file_announce(f, run.offset, run.length);
}

/* Announce the source bytes of those of the parts that begin in bytes [from, to) of the target.
 * Parts that follow one another are announced together. */
static void announce(const heft_copy_context *c, const uint32_t *parts, uint32_t count,
                     uint64_t from, uint64_t to)
{
    heft_range run = { 0, 0 };
    for (uint32_t i = 0; i < count; i++) {
        const heft_ix_part_row *of = heft_ix_part_row_at(&c->in->x, c->origins[parts[i]].part);
        uint64_t at = heft_ix_part_row_at(&c->p->x, parts[i])->offset;
        if (at >= to)
            break;
        if (at < from || !of->stored)
            continue;
        if (run.length && of->offset - (run.offset + run.length) > NEAR) {
            announce_run(c->in, run);
            run.length = 0;
        }
        run.offset = run.length ? run.offset : of->offset;
        run.length = of->offset + of->stored - run.offset;
    }
    announce_run(c->in, run);
}

void heft_copy_announce(const heft_copy_context *c)
{
    const heft_plan *plan = &c->p->plan;
    announce(c, plan->order, plan->order_count, 0, plan->header_bytes + AHEAD);
}

/* Announce what begins AHEAD bytes after the span. */
static void announce_after(const copy_job *c, const heft_range *span)
{
    uint64_t from = span->offset + AHEAD;
    uint32_t i = first_part_after(c, from);
    if (!c->c->only)
        announce(c->c, c->file_order + i, c->order_count - i, from, from + span->length);
}

static void run_span(void *arg, size_t i)
{
    const copy_job *job = arg;
    const heft_allocator *al = job->c->p->host->allocator;
    const heft_range *span = (const heft_range *)job->spans.ptr + i;
    worker w = { .job = job };
    if (heft_progress_halted(job->c->progress))
        return;
    announce_after(job, span);
    w.buf = heft_alloc(al, BUFFER, 64);
    bool has_memory = heft_part_source_init(&w.source, job->c) && w.buf;
    heft_status st = has_memory ? copy_span(&w, span->offset, span->offset + span->length)
                                : heft_error_no_memory(&w.source.err, "to copy");
    if (st)
        heft_progress_fail(job->c->progress, st, &w.source.err);
    heft_part_source_free(&w.source);
    heft_free(al, w.buf, BUFFER, 64);
}

heft_status heft_copy(const heft_copy_context *c, heft_error *err)
{
    heft_planner *p = c->p;
    copy_job job = { .c = c, .mem = { p->host->allocator, UINT64_MAX, 0 } };
    uint32_t *file_order;
    heft_status st = heft_planner_parts_in_order(p, &file_order, &job.order_count, err);
    job.file_order = file_order;
    if (!st)
        st = reflink_parts(c, job.file_order, job.order_count, &job.mem, &job.reflinked, err);
    if (!st)
        st = cut_unshared(&job, err);
    if (!st) {
        heft_file_enter(c->in);
        heft_host_run(p->host, job.spans.len, run_span, &job);
        st = heft_file_leave(c->in, err);
    }
    heft_vec_free(&job.mem, &job.spans, sizeof(heft_range));
    heft_vec_free(&job.mem, &job.reflinked, sizeof(heft_range));
    return st ? st : heft_progress_end(c->progress, err);
}

heft_status heft_copy_border(const heft_copy_context *c, uint64_t *at, heft_error *err)
{
    copy_job job = { .c = c };
    uint32_t *file_order;
    HEFT_TRY(heft_planner_parts_in_order(c->p, &file_order, &job.order_count, err));
    job.file_order = file_order;
    uint32_t i = first_part_after(&job, *at);
    if (i == job.order_count || part_at(&job, i)->offset >= *at)
        return HEFT_OK;
    uint64_t begin = part_at(&job, i)->offset;
    uint32_t unit = heft_part_unit_bytes(c, file_order[i]);
    *at = heft_part_is_whole(c, file_order[i]) ? begin : begin + heft_div(*at - begin, unit) * unit;
    return HEFT_OK;
}
