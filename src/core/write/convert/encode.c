/* encode.c - copy the payload into compressed parts: chunks are read and encoded in parallel,
 * and written in order. */
#include "core/write/append/frame_output.h"
#include "core/write/convert/copy.h"

typedef struct encode_job {
    const heft_copy_context *c;
    heft_error *err;
    heft_appender appender;
    heft_part_source sources[HEFT_APPEND_MAX_CHUNKS]; /* by chunk */
    heft_part_source in_order; /* reader of parts that must be read in order */
    uint32_t next;             /* index in the plan's order */
    uint64_t next_from;
} encode_job;

/* ---- chunks ---- */

/* Set up the next chunks in order; return the number of chunks. */
static uint32_t next_chunks(encode_job *e)
{
    const heft_plan *plan = &e->c->p->plan;
    uint32_t n = 0;
    while (n < e->appender.chunk_count && e->next < plan->order_count) {
        uint32_t part = plan->order[e->next];
        uint64_t left = heft_ix_part_row_at(&e->c->p->x, part)->length - e->next_from;
        heft_append_chunk *s = &e->appender.chunks[n++];
        s->part = part;
        s->from = e->next_from;
        s->len = left < e->appender.chunk_bytes ? (size_t)left : e->appender.chunk_bytes;
        s->last = s->len == left;
        e->next += s->last;
        e->next_from = s->last ? 0 : e->next_from + s->len;
    }
    return n;
}

static heft_status fill(heft_append_chunk *s, heft_part_source *w)
{
    return s->len ? heft_part_source_read(w, s->part, s->from, s->len, s->raw) : HEFT_OK;
}

/* After a chunk has failed, or the user has cancelled, heft_progress_end() has the error. */
static heft_status fill_chunk(void *ctx, uint32_t i, heft_error *err)
{
    encode_job *e = ctx;
    heft_append_chunk *s = &e->appender.chunks[i];
    heft_part_source *w = &e->sources[i];
    heft_status st = HEFT_OK;
    if (heft_progress_halted(e->c->progress))
        return HEFT_E_CANCELLED;
    if (!heft_part_is_whole(e->c, s->part))
        st = fill(s, w);
    if (st) {
        *err = w->err;
        heft_progress_fail(e->c->progress, st, err);
    }
    heft_progress_add(e->c->progress, s->len);
    return st;
}

static heft_status run_batch(encode_job *e, uint32_t n)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < n && !st; i++) {
        if (heft_part_is_whole(e->c, e->appender.chunks[i].part))
            st = fill(&e->appender.chunks[i], &e->in_order);
        if (st && e->err)
            *e->err = e->in_order.err;
    }
    if (!st) {
        heft_append_encode_batch(&e->appender, n, fill_chunk, e);
        st = heft_progress_end(e->c->progress, e->err);
    }
    return st ? st : heft_append_write_batch(&e->appender, n, e->err);
}

/* ---- the whole payload ---- */

heft_status heft_copy_encoded(const heft_copy_context *c, heft_error *err)
{
    const heft_allocator *al = c->p->host->allocator;
    encode_job *e = heft_alloc(al, sizeof *e, 64);
    if (!e)
        return heft_error_no_memory(err, "to compress");
    memset(e, 0, sizeof *e);
    e->c = c;
    e->err = err;
    heft_status st = heft_append_open(&e->appender, c->p, c->sink, err);
    bool has_memory = st || heft_part_source_init(&e->in_order, c);
    for (uint32_t i = 0; i < e->appender.chunk_count && !st && has_memory; i++)
        has_memory = heft_part_source_init(&e->sources[i], c);
    if (!has_memory)
        st = heft_error_no_memory(err, "to compress");
    if (!st) {
        heft_file_enter(c->in);
        for (uint32_t n; !st && (n = next_chunks(e));)
            st = run_batch(e, n);
        heft_status left = heft_file_leave(c->in, err);
        st = left ? left : st;
        c->p->plan.data_end = e->appender.at;
    }
    for (uint32_t i = 0; i < HEFT_APPEND_MAX_CHUNKS; i++)
        if (e->sources[i].c)
            heft_part_source_free(&e->sources[i]);
    if (e->in_order.c)
        heft_part_source_free(&e->in_order);
    heft_append_close(&e->appender);
    heft_free(al, e, sizeof *e, 64);
    return st;
}
