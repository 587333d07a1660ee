/* encode.c - a conversion whose parts are compressed: pieces are read and encoded side by side, and written
 * in order. */
#include "core/write/append_model.h"
#include "core/write/copy.h"

#include "core/write/part_source.h"

typedef struct encoding {
    const heft_copying *c;
    heft_error *err;
    heft_appender to;
    heft_part_source producers[HEFT_APPEND_MOST]; /* one for each piece */
    heft_part_source in_order;                    /* for parts that one reader has to see whole */
    uint32_t next;                                /* position in the plan's order */
    uint64_t next_from;
} encoding;

/* ---- pieces ---- */

/* The next pieces in order; returns how many there were. */
static uint32_t take_pieces(encoding *e)
{
    const heft_plan *plan = &e->c->p->plan;
    uint32_t n = 0;
    while (n < e->to.width && e->next < plan->order_count) {
        uint32_t part = plan->order[e->next];
        uint64_t left = heft_ix_part_row_at(&e->c->p->x, part)->length - e->next_from;
        heft_piece *s = &e->to.pieces[n++];
        s->part = part;
        s->from = e->next_from;
        s->len = left < e->to.piece ? (size_t)left : e->to.piece;
        s->last = s->len == left;
        e->next += s->last;
        e->next_from = s->last ? 0 : e->next_from + s->len;
    }
    return n;
}

static heft_status fill(heft_piece *s, heft_part_source *w)
{
    return s->len ? heft_part_source_read(w, s->part, s->from, s->len, s->raw) : HEFT_OK;
}

static void run_piece(void *arg, size_t i)
{
    encoding *e = arg;
    heft_piece *s = &e->to.pieces[i];
    heft_part_source *w = &e->producers[i];
    heft_status st = HEFT_OK;
    if (heft_progress_halted(e->c->meter))
        return;
    if (!heft_part_is_whole(e->c, s->part))
        st = fill(s, w);
    if (!st)
        st = heft_append_encode(&e->to, s, &w->err);
    if (st)
        heft_progress_fail(e->c->meter, st, &w->err);
    heft_progress_add(e->c->meter, s->len);
}

static heft_status run_batch(encoding *e, uint32_t n)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < n && !st; i++) {
        if (heft_part_is_whole(e->c, e->to.pieces[i].part))
            st = fill(&e->to.pieces[i], &e->in_order);
        if (st && e->err)
            *e->err = e->in_order.err;
    }
    if (!st) {
        heft_host_run(e->c->p->host, n, run_piece, e);
        st = heft_progress_end(e->c->meter, e->err);
    }
    for (uint32_t i = 0; i < n && !st; i++)
        st = heft_append_write(&e->to, &e->to.pieces[i], e->err);
    return st;
}

/* ---- all of it ---- */

heft_status heft_copy_encoded(const heft_copying *c, heft_error *err)
{
    const heft_allocator *al = c->p->host->allocator;
    encoding *e = heft_alloc(al, sizeof *e, 64);
    if (!e)
        return heft_error_no_memory(err, "to compress");
    memset(e, 0, sizeof *e);
    e->c = c;
    e->err = err;
    heft_status st = heft_append_open(&e->to, c->p, c->sink, err);
    bool has_memory = st || heft_part_source_init(&e->in_order, c);
    for (uint32_t i = 0; i < e->to.width && !st && has_memory; i++)
        has_memory = heft_part_source_init(&e->producers[i], c);
    if (!has_memory)
        st = heft_error_no_memory(err, "to compress");
    if (!st) {
        heft_file_enter(c->in);
        for (uint32_t n; !st && (n = take_pieces(e));)
            st = run_batch(e, n);
        heft_status there = heft_file_leave(c->in, err);
        st = there ? there : st;
        c->p->plan.data_end = e->to.at;
    }
    for (uint32_t i = 0; i < HEFT_APPEND_MOST; i++)
        if (e->producers[i].c)
            heft_part_source_free(&e->producers[i]);
    if (e->in_order.c)
        heft_part_source_free(&e->in_order);
    heft_append_close(&e->to);
    heft_free(al, e, sizeof *e, 64);
    return st;
}
