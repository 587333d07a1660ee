/* append.c - pieces of parts in, frames out; what stands around them. */
#include "core/write/append.h"

enum { PIECE = 2 << 20, END_BUFFER = 4096 };

static heft_status no_memory(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_NOMEM, "no memory to compress");
}

/* ---- writing ---- */

static heft_status put(heft_appender *a, const void *data, size_t len)
{
    heft_status st = heft_segments_add(&a->p->written, a->at, data, len, a->err);
    if (!st)
        st = heft_sink_put(a->sink, a->at, data, len, a->err);
    a->at += len;
    return st;
}

static heft_status put_end(void *ctx, uint64_t at, const void *data, size_t len)
{
    heft_appender *a = ctx;
    (void)at;
    if (a->p->part_digest && !a->p->plan.digest_decoded)
        a->tap.digest->update(a->tap.state, data, len);
    return put(a, data, len);
}

/* What the format has behind the frames of a part. */
static heft_status end_frames(heft_appender *a)
{
    const heft_plan *plan = &a->p->plan;
    uint8_t buf[END_BUFFER];
    heft_out o = { .buf = buf, .cap = sizeof buf, .flush = put_end, .ctx = a };
    if (!plan->frames_end)
        return HEFT_OK;
    plan->frames_end(&o, a->frames.ptr, a->frames.len);
    return heft_out_flush(&o);
}

static heft_status note_frame(heft_appender *a, const heft_piece *s)
{
    heft_frame *to;
    if (!a->p->plan.frames_end)
        return HEFT_OK;
    a->frames.len = s->from ? a->frames.len : 0;
    to = heft_vec_push(&a->mem, &a->frames, sizeof *to);
    if (!to)
        return no_memory(a->err);
    *to = (heft_frame){ (uint32_t)s->encoded, (uint32_t)s->len };
    return HEFT_OK;
}

static heft_status begin_part(heft_appender *a)
{
    heft_planner *p = a->p;
    const heft_allocator *al = p->host->allocator;
    uint64_t start;
    if (!heft_align_up(&start, a->at, p->plan.align))
        return heft_error_plain(a->err, HEFT_E_LOSSY, "the file would pass 2^64 bytes");
    heft_status st = heft_sink_fill(a->sink, a->at, start - a->at, p->plan.fill, a->err);
    a->at = a->part_start = start;
    if (st || !p->part_digest)
        return st;
    a->tap.digest = p->part_digest;
    if (!a->tap.state)
        a->tap.state = al->resize(al->ctx, NULL, 0, p->part_digest->state_bytes, 64);
    return a->tap.state && p->part_digest->init(a->tap.state) ? HEFT_OK : no_memory(a->err);
}

static void end_part(heft_appender *a, const heft_piece *s, bool raw)
{
    heft_ix_part_row *part = heft_ix_part_row_at(&a->p->x, s->part);
    part->offset = a->part_start;
    part->stored = a->at - a->part_start;
    part->encoding = raw ? HEFT_RAW : (uint8_t)a->codec->encoding;
    if (a->p->part_digest)
        a->tap.digest->final(a->p->part_digests[s->part], a->tap.state);
}

/* A part of one piece that compressing does not make smaller stays as it is. */
heft_status heft_append_write(heft_appender *a, const heft_piece *s, heft_error *err)
{
    bool first = !s->from, raw = first && s->last && s->encoded >= s->len;
    bool decoded = a->p->plan.digest_decoded;
    const uint8_t *data = raw ? s->raw : s->out;
    size_t len = raw ? s->len : s->encoded;
    a->err = err;
    heft_status st = first ? begin_part(a) : HEFT_OK;
    if (!st && a->p->part_digest)
        a->tap.digest->update(a->tap.state, decoded ? s->raw : data, decoded ? s->len : len);
    if (!st)
        st = put(a, data, len);
    if (!st && !raw)
        st = note_frame(a, s);
    if (!st && s->last && !raw)
        st = end_frames(a);
    if (!st && s->last)
        end_part(a, s, raw);
    return st;
}

heft_status heft_append_encode(const heft_appender *a, heft_piece *s, heft_error *err)
{
    s->encoded = a->codec->bound(a->piece);
    return s->len ? a->codec->encode(s->encoder, s->out, &s->encoded, s->raw, s->len, err)
                  : HEFT_OK;
}

/* ---- opening and closing ---- */

static heft_status open_piece(heft_appender *a, heft_piece *s, heft_error *err)
{
    const heft_allocator *al = a->p->host->allocator;
    s->raw = al->resize(al->ctx, NULL, 0, a->piece, 64);
    s->out = al->resize(al->ctx, NULL, 0, a->codec->bound(a->piece), 64);
    if (!s->raw || !s->out)
        return no_memory(err);
    return a->codec->encoder(&s->encoder, a->p->opt.encoding_level, a->p->plan.frame_checksums,
                             err);
}

heft_status heft_append_open(heft_appender *a, heft_planner *p, heft_sink *sink, heft_error *err)
{
    uint32_t threads = p->host->executor ? p->host->executor->width : 1;
    heft_status st = HEFT_OK;
    *a = (heft_appender){ .p = p, .sink = sink, .at = p->plan.front_bytes, .err = err };
    a->mem = (heft_memory){ p->host->allocator, UINT64_MAX, 0 };
    a->piece = p->plan.frame_bytes ? p->plan.frame_bytes : PIECE;
    a->codec = heft_host_codec(p->host, p->plan.encoding);
    if (!a->codec)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "this build cannot compress");
    a->width = 2 * threads < HEFT_APPEND_MOST ? 2 * threads : (uint32_t)HEFT_APPEND_MOST;
    for (uint32_t i = 0; i < a->width && !st; i++)
        st = open_piece(a, &a->pieces[i], err);
    return st;
}

static void close_piece(heft_appender *a, heft_piece *s)
{
    const heft_allocator *al = a->p->host->allocator;
    if (s->raw)
        al->resize(al->ctx, s->raw, a->piece, 0, 64);
    if (s->out)
        al->resize(al->ctx, s->out, a->codec->bound(a->piece), 0, 64);
    if (s->encoder)
        a->codec->end(s->encoder);
}

void heft_append_close(heft_appender *a)
{
    if (!a->p)
        return;
    const heft_allocator *al = a->p->host->allocator;
    for (uint32_t i = 0; i < a->width; i++)
        close_piece(a, &a->pieces[i]);
    if (a->tap.state)
        al->resize(al->ctx, a->tap.state, a->tap.digest->state_bytes, 0, 64);
    heft_vec_free(&a->mem, &a->frames, sizeof(heft_frame));
}
