/* append_model.c - pieces of parts in, frames out; what stands around them. */
#include "core/write/append_model.h"

enum { PIECE = 2 << 20, END_BUFFER = 4096 };

/* ---- writing ---- */

static heft_status put(heft_appender *a, const void *data, size_t len)
{
    heft_status st = heft_planner_write(a->p, a->sink, a->at, data, len, a->err);
    a->at += len;
    return st;
}

static heft_status put_end(void *ctx, uint64_t at, const void *data, size_t len)
{
    heft_appender *a = ctx;
    (void)at;
    if (!a->p->plan.digest_decoded)
        heft_running_digest_update(&a->tap, data, len);
    return put(a, data, len);
}

/* Notes a frame, for formats that ask for it, and writes what these have behind the last frame of a part. */
static heft_status add_frame(heft_appender *a, const heft_piece *s)
{
    const heft_plan *plan = &a->p->plan;
    uint8_t buf[END_BUFFER];
    heft_out o = { .buf = buf, .cap = sizeof buf, .flush = put_end, .ctx = a };
    if (!plan->frames_end)
        return HEFT_OK;
    a->frames.len = s->from ? a->frames.len : 0;
    heft_frame *to = heft_vec_push(&a->mem, &a->frames, sizeof *to);
    if (!to)
        return heft_error_no_memory(a->err, "to compress");
    *to = (heft_frame){ (uint32_t)s->encoded, (uint32_t)s->len };
    if (!s->last)
        return HEFT_OK;
    plan->frames_end(&o, a->frames.ptr, a->frames.len);
    return heft_out_flush(&o);
}

static heft_status begin_part(heft_appender *a, uint32_t part)
{
    heft_planner *p = a->p;
    uint64_t start;
    if (!heft_align_up(&start, a->at, p->plan.align))
        return heft_error_plain(a->err, HEFT_E_LOSSY, "the file would pass 2^64 bytes");
    heft_status st = heft_sink_fill(a->sink, a->at, start - a->at, p->plan.fill, a->err);
    a->at = a->part_start = start;
    return st ? st
              : heft_running_digest_begin(&a->tap, heft_planner_digest_of(p, part),
                                          p->host->allocator, "for a digest", a->err);
}

static void end_part(heft_appender *a, const heft_piece *s, bool raw)
{
    heft_ix_part_row *part = heft_ix_part_row_at(&a->p->x, s->part);
    part->offset = a->part_start;
    part->stored = a->at - a->part_start;
    part->encoding = raw ? HEFT_RAW : (uint8_t)a->p->plan.storage[s->part].encoding;
    if (a->tap.digest)
        heft_running_digest_end(&a->tap, a->p->part_digests[s->part]);
}

heft_status heft_append_write(heft_appender *a, const heft_piece *s, heft_error *err)
{
    bool first = !s->from, raw = a->p->plan.storage[s->part].encoding == HEFT_RAW;
    /* a part of one piece that compressing does not make smaller stays as it is */
    if (first && s->last && s->encoded >= s->len && !heft_planner_requires_encoding(a->p, s->part))
        raw = true;
    bool decoded = a->p->plan.digest_decoded;
    const uint8_t *data = raw ? s->raw : s->out;
    size_t len = raw ? s->len : s->encoded;
    a->err = err;
    heft_status st = first ? begin_part(a, s->part) : HEFT_OK;
    if (!st) {
        heft_running_digest_update(&a->tap, decoded ? s->raw : data, decoded ? s->len : len);
        st = put(a, data, len);
    }
    if (!st && !raw)
        st = add_frame(a, s);
    if (!st && s->last)
        end_part(a, s, raw);
    return st;
}

static void close_encoder(heft_piece *s)
{
    if (s->encoder)
        s->codec->end(s->encoder);
    s->encoder = NULL;
    s->codec = NULL;
}

/* The encoder of a piece serves one part after the other, as long as they are stored alike. */
static heft_status open_encoder(const heft_appender *a, heft_piece *s, const heft_storage *how,
                                heft_error *err)
{
    const heft_codec *codec = heft_host_codec(a->p->host, how->encoding);
    if (s->codec == codec && s->level == how->level)
        return HEFT_OK;
    close_encoder(s);
    s->codec = codec;
    s->level = how->level;
    heft_status st = codec->encoder(&s->encoder, how->level, a->p->plan.frame_checksums, err);
    if (st)
        close_encoder(s);
    return st;
}

heft_status heft_append_encode(const heft_appender *a, heft_piece *s, heft_error *err)
{
    const heft_storage *how = &a->p->plan.storage[s->part];
    s->encoded = a->room;
    if (how->encoding == HEFT_RAW || (!s->len && !heft_planner_requires_encoding(a->p, s->part)))
        return HEFT_OK;
    heft_status st = open_encoder(a, s, how, err);
    return st ? st : s->codec->encode(s->encoder, s->out, &s->encoded, s->raw, s->len, err);
}

/* ---- opening and closing ---- */

/* How much room the encodings take, if this build has them. */
static heft_status measure_room(heft_appender *a, heft_error *err)
{
    const heft_plan *plan = &a->p->plan;
    bool is_asked[HEFT_ENCODING_OTHER] = { false };
    bool may_be_any = a->p->format->caps & HEFT_CAN_APPEND; /* of parts that are added later */
    a->room = a->piece;
    for (uint32_t i = 0; i < plan->order_count; i++)
        is_asked[plan->storage[plan->order[i]].encoding] = true;
    for (heft_encoding e = HEFT_RAW + 1; e < HEFT_ENCODING_OTHER; e++) {
        const heft_codec *codec = heft_host_codec(a->p->host, e);
        if (is_asked[e] && !codec)
            return heft_error_plain(err, HEFT_E_UNSUPPORTED, "this build cannot compress");
        bool is_used = is_asked[e] || (may_be_any && codec && codec->encoder);
        if (is_used && codec->bound(a->piece) > a->room)
            a->room = codec->bound(a->piece);
    }
    return HEFT_OK;
}

heft_status heft_append_open(heft_appender *a, heft_planner *p, heft_sink *sink, heft_error *err)
{
    const heft_allocator *al = p->host->allocator;
    uint32_t threads = p->host->executor ? p->host->executor->width : 1;
    *a = (heft_appender){ .p = p, .sink = sink, .at = p->plan.data_end, .err = err };
    a->mem = (heft_memory){ p->host->allocator, UINT64_MAX, 0 };
    a->piece = p->plan.frame_bytes ? p->plan.frame_bytes : PIECE;
    heft_status st = measure_room(a, err);
    a->width = 2 * threads < HEFT_APPEND_MOST ? 2 * threads : (uint32_t)HEFT_APPEND_MOST;
    for (uint32_t i = 0; i < a->width && !st; i++) {
        heft_piece *s = &a->pieces[i];
        s->raw = heft_alloc(al, a->piece, 64);
        s->out = heft_alloc(al, a->room, 64);
        st = s->raw && s->out ? HEFT_OK : heft_error_no_memory(err, "to compress");
    }
    return st;
}

void heft_append_close(heft_appender *a)
{
    if (!a->p)
        return;
    const heft_allocator *al = a->p->host->allocator;
    for (uint32_t i = 0; i < a->width; i++) {
        heft_piece *s = &a->pieces[i];
        heft_free(al, s->raw, a->piece, 64);
        heft_free(al, s->out, a->room, 64);
        close_encoder(s);
    }
    heft_running_digest_close(&a->tap);
    heft_vec_free(&a->mem, &a->frames, sizeof(heft_frame));
}
