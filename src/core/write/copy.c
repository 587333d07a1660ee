/* copy.c - the target is cut into spans; each is put together in a buffer that stays in cache and
 * written to its place.  Any order of spans gives the same file. */
#include "core/write/copy.h"

#include "base/bisect.h"
#include "core/write/part_source.h"
#include "core/write/reflink.h"

enum {
    SPAN = 4 << 20,     /* about what a worker takes at a time */
    BUFFER = 256 << 10, /* read, changed and written while it is hot */
};

typedef struct copy {
    const heft_copying *c;
    const uint32_t *places; /* parts in the order of the file */
    uint32_t place_count;
    heft_vec spans;  /* of the target that are to be written, heft_range */
    heft_vec shared; /* that are there already, heft_range */
    heft_memory mem;
} copy;

typedef struct worker {
    const copy *job;
    heft_part_source producer;
    uint8_t *buf;
} worker;

static const heft_ix_part_row *place(const copy *c, uint32_t i)
{
    return heft_ix_part_row_at(&c->c->p->x, c->places[i]);
}

static uint64_t place_end(const copy *c, uint32_t i)
{
    return place(c, i)->offset + place(c, i)->stored;
}

/* The first place that ends behind `at`. */
static uint32_t place_behind(const copy *c, uint64_t at)
{
    heft_bisect b = { .end = c->place_count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, place_end(c, b.mid) <= at);
    return b.first;
}

/* ---- spans ---- */

/* At multiples of SPAN, unless one lies within a part that must stay whole: then at that part's end. */
static heft_status cut_spans(copy *c, uint64_t from, uint64_t to, heft_error *err)
{
    bool is_stream = !c->c->sink->ops->write_at; /* front to back in one go */
    uint32_t i = place_behind(c, from);
    for (uint64_t at = from; at < to;) {
        uint64_t end = is_stream ? to : (at / SPAN + 1) * SPAN;
        while (i < c->place_count && place_end(c, i) <= end)
            i++;
        if (i < c->place_count && place(c, i)->offset < end &&
            heft_part_is_whole(c->c, c->places[i]))
            end = place_end(c, i);
        heft_range *span = heft_vec_push(&c->mem, &c->spans, sizeof *span);
        if (!span)
            return heft_error_no_memory(err, "to plan the copy");
        end = end < to ? end : to;
        *span = (heft_range){ at, end - at };
        at = end;
    }
    return HEFT_OK;
}

/* What lies between the ranges that are shared. */
static heft_status cut_all(copy *c, heft_error *err)
{
    const heft_range *shared = c->shared.ptr;
    uint64_t at = c->c->p->plan.header_bytes, end = c->c->p->plan.data_end;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < c->shared.len && !st; i++) {
        st = cut_spans(c, at, shared[i].offset, err);
        at = shared[i].offset + shared[i].length;
    }
    return st ? st : cut_spans(c, at, end, err);
}

/* Bytes [at, at + len) of the target, from place *i on. */
static heft_status assemble(worker *w, uint64_t at, size_t len, uint32_t *i)
{
    const copy *c = w->job;
    heft_planner *p = c->c->p;
    uint8_t *dst = w->buf;
    heft_status st = HEFT_OK;
    while (len && !st) {
        while (*i < c->place_count && place_end(c, *i) <= at)
            ++*i;
        const heft_ix_part_row *part = *i < c->place_count ? place(c, *i) : NULL;
        uint64_t run;
        if (part && part->offset <= at) {
            run = part->offset + part->stored - at;
            run = run < len ? run : len;
            st = heft_part_source_read(&w->producer, c->places[*i], at - part->offset, (size_t)run,
                                       dst);
        } else {
            run = part && part->offset - at < len ? part->offset - at : len;
            st = heft_planner_record_header(p, c->places, c->place_count, *i, at, (size_t)run, dst,
                                            &w->producer.err);
        }
        if (!st)
            st = heft_partial_crcs_add(&p->written, at, dst, (size_t)run, &w->producer.err);
        dst += run;
        at += run;
        len -= (size_t)run;
    }
    return st;
}

/* How many bytes of [from, to) are left for later, if it begins with any; else cuts *n before the next. */
static uint64_t left_out(const copy *job, uint64_t from, uint64_t to, uint32_t i, size_t *n)
{
    if (!job->c->p->plan.needs_preceding_digests || !job->c->sink->ops->write_at)
        return 0;
    while (i < job->place_count && place_end(job, i) <= from)
        i++;
    uint64_t begins = i < job->place_count ? place(job, i)->offset : to;
    if (begins > from)
        return (begins < to ? begins : to) - from;
    uint64_t ends = place_end(job, i);
    *n = ends - from < *n ? (size_t)(ends - from) : *n;
    return 0;
}

static heft_status copy_span(worker *w, uint64_t from, uint64_t to)
{
    const heft_copying *c = w->job->c;
    uint32_t i = place_behind(w->job, from);
    heft_status st = HEFT_OK;
    while (from < to && !st && !heft_progress_halted(c->meter)) {
        size_t n = to - from < BUFFER ? (size_t)(to - from) : BUFFER;
        uint64_t later = left_out(w->job, from, to, i, &n);
        if (later) {
            heft_progress_add(c->meter, later);
            from += later;
            continue;
        }
        st = assemble(w, from, n, &i);
        if (!st)
            st = heft_sink_put(c->sink, from, w->buf, n, &w->producer.err);
        heft_progress_add(c->meter, n);
        from += n;
    }
    return st;
}

static void run_span(void *arg, size_t i)
{
    const copy *job = arg;
    const heft_allocator *al = job->c->p->host->allocator;
    const heft_range *span = (const heft_range *)job->spans.ptr + i;
    worker w = { .job = job };
    if (heft_progress_halted(job->c->meter))
        return;
    w.buf = heft_alloc(al, BUFFER, 64);
    bool room = heft_part_source_init(&w.producer, job->c) && w.buf;
    heft_status st = room ? copy_span(&w, span->offset, span->offset + span->length)
                          : heft_error_no_memory(&w.producer.err, "to copy");
    if (st)
        heft_progress_fail(job->c->meter, st, &w.producer.err);
    heft_part_source_free(&w.producer);
    heft_free(al, w.buf, BUFFER, 64);
}

heft_status heft_copy(const heft_copying *c, heft_error *err)
{
    heft_planner *p = c->p;
    copy job = { .c = c, .mem = { p->host->allocator, UINT64_MAX, 0 } };
    uint32_t *places;
    heft_status st = heft_planner_parts_in_order(p, &places, &job.place_count, err);
    job.places = places;
    if (!st)
        st = heft_reflink_parts(c, job.places, job.place_count, &job.mem, &job.shared, err);
    if (!st)
        st = cut_all(&job, err);
    if (!st) {
        heft_file_enter(c->in);
        heft_host_run(p->host, job.spans.len, run_span, &job);
        st = heft_file_leave(c->in, err);
    }
    heft_vec_free(&job.mem, &job.spans, sizeof(heft_range));
    heft_vec_free(&job.mem, &job.shared, sizeof(heft_range));
    return st ? st : heft_progress_end(c->meter, err);
}
