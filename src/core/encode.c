/* encode.c - parts compressed in pieces of a fixed size, each a frame of its own: as many at once
 * as there are threads, written one after the other.  The file does not depend on how many. */
#include "core/copy.h"

#include "core/produce.h"

enum { PIECE = 2 << 20, MOST = 12, END_BUFFER = 4096 };

typedef struct slot { /* one piece on its way */
    uint32_t part;
    uint64_t from;
    size_t len, encoded;
    bool last, failed;
    uint8_t *raw, *out;
    void *encoder;
    heft_producer producer;
} slot;

typedef struct encoding {
    const heft_copying *c;
    const heft_codec *codec;
    heft_error *err;
    slot slots[MOST];
    uint32_t width;
    size_t piece; /* bytes of content */
    heft_memory mem;
    heft_vec frames;        /* heft_frame, of the part being written */
    heft_producer in_order; /* for parts that one reader has to see whole */
    uint32_t next;          /* position in the plan's order */
    uint64_t next_from;
    uint64_t at;         /* end of the file so far */
    uint64_t part_start; /* of the part being written */
    heft_tap tap;        /* over its stored or decoded bytes */
} encoding;

static heft_ix_part_row *row(const encoding *e, uint32_t part)
{
    return heft_ix_part_row_at(&e->c->p->x, part);
}

static heft_status no_memory(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_NOMEM, "no memory to compress");
}

/* ---- pieces ---- */

/* The next pieces in order; returns how many there were. */
static uint32_t take_pieces(encoding *e)
{
    const heft_plan *plan = &e->c->p->plan;
    uint32_t n = 0;
    while (n < e->width && e->next < plan->order_count) {
        uint32_t part = plan->order[e->next];
        uint64_t left = row(e, part)->length - e->next_from;
        slot *s = &e->slots[n++];
        s->part = part;
        s->from = e->next_from;
        s->len = left < e->piece ? (size_t)left : e->piece;
        s->last = s->len == left;
        e->next += s->last;
        e->next_from = s->last ? 0 : e->next_from + s->len;
    }
    return n;
}

static heft_status fill(encoding *e, slot *s, heft_producer *w)
{
    (void)e;
    return s->len ? heft_produce(w, s->part, s->from, s->len, s->raw) : HEFT_OK;
}

static void run_slot(void *arg, size_t i)
{
    encoding *e = arg;
    slot *s = &e->slots[i];
    heft_error *err = &s->producer.err;
    heft_status st = HEFT_OK;
    if (heft_meter_halted(e->c->meter))
        return;
    if (!heft_part_is_whole(e->c, s->part))
        st = fill(e, s, &s->producer);
    s->encoded = e->codec->bound(e->piece);
    if (!st && s->len)
        st = e->codec->encode(s->encoder, s->out, &s->encoded, s->raw, s->len, err);
    if (st)
        heft_meter_fail(e->c->meter, err);
    heft_meter_add(e->c->meter, s->len);
}

/* ---- writing ---- */

static heft_status put(encoding *e, const void *data, size_t len)
{
    heft_status st = heft_segments_add(&e->c->p->written, e->at, data, len, e->err);
    if (!st)
        st = heft_sink_put(e->c->sink, e->at, data, len, e->err);
    e->at += len;
    return st;
}

static heft_status put_end(void *ctx, uint64_t at, const void *data, size_t len)
{
    encoding *e = ctx;
    (void)at;
    if (e->c->p->part_digest && !e->c->p->plan.digest_decoded)
        e->tap.digest->update(e->tap.state, data, len);
    return put(e, data, len);
}

/* What the format has behind the frames of a part. */
static heft_status end_frames(encoding *e)
{
    const heft_plan *plan = &e->c->p->plan;
    uint8_t buf[END_BUFFER];
    heft_out o = { .buf = buf, .cap = sizeof buf, .flush = put_end, .ctx = e };
    if (!plan->frames_end)
        return HEFT_OK;
    plan->frames_end(&o, e->frames.ptr, e->frames.len);
    return heft_out_flush(&o);
}

static heft_status note_frame(encoding *e, const slot *s)
{
    heft_frame *to;
    if (!e->c->p->plan.frames_end)
        return HEFT_OK;
    e->frames.len = s->from ? e->frames.len : 0;
    to = heft_vec_push(&e->mem, &e->frames, sizeof *to);
    if (!to)
        return no_memory(e->err);
    *to = (heft_frame){ (uint32_t)s->encoded, (uint32_t)s->len };
    return HEFT_OK;
}

static heft_status begin_part(encoding *e, slot *s)
{
    heft_planner *p = e->c->p;
    const heft_allocator *al = p->host->allocator;
    uint64_t start;
    if (!heft_align_up(&start, e->at, p->plan.align))
        return heft_error_plain(e->err, HEFT_E_LOSSY, "the file would pass 2^64 bytes");
    heft_status st = heft_sink_fill(e->c->sink, e->at, start - e->at, p->plan.fill, e->err);
    e->at = e->part_start = start;
    if (st || !p->part_digest)
        return st;
    e->tap.digest = p->part_digest;
    if (!e->tap.state)
        e->tap.state = al->resize(al->ctx, NULL, 0, p->part_digest->state_bytes, 64);
    (void)s;
    return e->tap.state && p->part_digest->init(e->tap.state) ? HEFT_OK : no_memory(e->err);
}

static void end_part(encoding *e, slot *s, bool raw)
{
    heft_ix_part_row *part = row(e, s->part);
    part->offset = e->part_start;
    part->stored = e->at - e->part_start;
    part->encoding = raw ? HEFT_RAW : (uint8_t)e->codec->encoding;
    if (e->c->p->part_digest)
        e->tap.digest->final(e->c->p->part_digests[s->part], e->tap.state);
}

/* A part of one piece that compressing does not make smaller stays as it is. */
static heft_status write_slot(encoding *e, slot *s)
{
    bool first = !s->from, raw = first && s->last && s->encoded >= s->len;
    bool decoded = e->c->p->plan.digest_decoded;
    const uint8_t *data = raw ? s->raw : s->out;
    size_t len = raw ? s->len : s->encoded;
    heft_status st = first ? begin_part(e, s) : HEFT_OK;
    if (!st && e->c->p->part_digest)
        e->tap.digest->update(e->tap.state, decoded ? s->raw : data, decoded ? s->len : len);
    if (!st)
        st = put(e, data, len);
    if (!st && !raw)
        st = note_frame(e, s);
    if (!st && s->last && !raw)
        st = end_frames(e);
    if (!st && s->last)
        end_part(e, s, raw);
    return st;
}

static heft_status run_batch(encoding *e, uint32_t n)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < n && !st; i++) {
        if (heft_part_is_whole(e->c, e->slots[i].part))
            st = fill(e, &e->slots[i], &e->in_order);
        if (st && e->err)
            *e->err = e->in_order.err;
    }
    if (!st) {
        heft_host_run(e->c->p->host, n, run_slot, e);
        st = heft_meter_end(e->c->meter, e->err);
    }
    for (uint32_t i = 0; i < n && !st; i++)
        st = write_slot(e, &e->slots[i]);
    return st;
}

/* ---- all of it ---- */

static heft_status open_slot(encoding *e, slot *s, int level)
{
    const heft_allocator *al = e->c->p->host->allocator;
    s->raw = al->resize(al->ctx, NULL, 0, e->piece, 64);
    s->out = al->resize(al->ctx, NULL, 0, e->codec->bound(e->piece), 64);
    if (!heft_producer_init(&s->producer, e->c) || !s->raw || !s->out)
        return no_memory(e->err);
    return e->codec->encoder(&s->encoder, level, e->c->p->plan.frame_checksums, e->err);
}

static void close_slot(encoding *e, slot *s)
{
    const heft_allocator *al = e->c->p->host->allocator;
    if (!s->producer.c)
        return;
    if (s->raw)
        al->resize(al->ctx, s->raw, e->piece, 0, 64);
    if (s->out)
        al->resize(al->ctx, s->out, e->codec->bound(e->piece), 0, 64);
    if (s->encoder)
        e->codec->end(s->encoder);
    heft_producer_free(&s->producer);
}

static heft_status encode_all(encoding *e)
{
    heft_status st = HEFT_OK;
    int level = e->c->p->opt.encoding_level;
    if (!heft_producer_init(&e->in_order, e->c))
        return no_memory(e->err);
    for (uint32_t i = 0; i < e->width && !st; i++)
        st = open_slot(e, &e->slots[i], level);
    heft_file_enter(e->c->in);
    for (uint32_t n; !st && (n = take_pieces(e));)
        st = run_batch(e, n);
    heft_status there = heft_file_leave(e->c->in, e->err);
    e->c->p->plan.data_end = e->at;
    return there ? there : st;
}

heft_status heft_copy_encoded(const heft_copying *c, heft_error *err)
{
    heft_planner *p = c->p;
    const heft_allocator *al = p->host->allocator;
    uint32_t threads = p->host->executor ? p->host->executor->width : 1;
    encoding *e = al->resize(al->ctx, NULL, 0, sizeof *e, 64);
    if (!e)
        return no_memory(err);
    *e = (encoding){ .c = c, .err = err, .at = p->plan.front_bytes };
    e->mem = (heft_memory){ al, UINT64_MAX, 0 };
    e->piece = p->plan.frame_bytes ? p->plan.frame_bytes : PIECE;
    e->width = 2 * threads < MOST ? 2 * threads : MOST;
    e->codec = heft_host_codec(p->host, p->plan.encoding);
    heft_status st = e->codec
                         ? encode_all(e)
                         : heft_error_plain(err, HEFT_E_UNSUPPORTED, "this build cannot compress");
    for (uint32_t i = 0; i < e->width; i++)
        close_slot(e, &e->slots[i]);
    if (e->in_order.c)
        heft_producer_free(&e->in_order);
    if (e->tap.state)
        al->resize(al->ctx, e->tap.state, e->tap.digest->state_bytes, 0, 64);
    heft_vec_free(&e->mem, &e->frames, sizeof(heft_frame));
    al->resize(al->ctx, e, sizeof *e, 0, 64);
    return st;
}
