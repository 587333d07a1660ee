/* frame_output.c - write encoded chunks as frames, with padding and digests. */
#include "core/write/append/frame_output.h"

#include "core/write/plan/plan.h"

enum { CHUNK = 2 << 20, END_BUFFER = 4096 };

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
        heft_running_digest_update(&a->part_digest, data, len);
    return put(a, data, len);
}

/* Record a frame if the format asks for frames, and write the format's list of frames after the
 * last frame of a part. */
static heft_status add_frame(heft_appender *a, const heft_append_chunk *s)
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
        return heft_error_plain(a->err, HEFT_E_LOSSY, "the file would exceed 2^64 bytes");
    heft_status st = heft_sink_fill(a->sink, a->at, start - a->at, p->plan.fill, a->err);
    a->at = a->part_start = start;
    return st ? st
              : heft_running_digest_begin(&a->part_digest, heft_planner_digest_of(p, part),
                                          p->host->allocator, "for a digest", a->err);
}

static void end_part(heft_appender *a, const heft_append_chunk *s, bool raw)
{
    heft_ix_part_row *part = heft_ix_part_row_at(&a->p->x, s->part);
    part->offset = a->part_start;
    part->stored = a->at - a->part_start;
    part->encoding = raw ? HEFT_RAW : (uint8_t)a->p->plan.storage[s->part].encoding;
    if (a->part_digest.digest)
        heft_running_digest_end(&a->part_digest, a->p->part_digests[s->part]);
}

heft_status heft_append_write(heft_appender *a, const heft_append_chunk *s, heft_error *err)
{
    bool first = !s->from, raw = a->p->plan.storage[s->part].encoding == HEFT_RAW;
    /* A part of a single chunk that does not get smaller is stored raw. */
    if (first && s->last && s->encoded >= s->len && !heft_planner_requires_encoding(a->p, s->part))
        raw = true;
    bool decoded = a->p->plan.digest_decoded;
    const uint8_t *data = raw ? s->raw : s->out;
    size_t len = raw ? s->len : s->encoded;
    a->err = err;
    if (first)
        HEFT_TRY(begin_part(a, s->part));
    heft_running_digest_update(&a->part_digest, decoded ? s->raw : data, decoded ? s->len : len);
    HEFT_TRY(put(a, data, len));
    if (!raw)
        HEFT_TRY(add_frame(a, s));
    if (s->last)
        end_part(a, s, raw);
    return HEFT_OK;
}

static void close_encoder(heft_append_chunk *s)
{
    if (s->encoder)
        s->codec->encoder_close(s->encoder);
    s->encoder = NULL;
    s->codec = NULL;
}

/* Open the encoder of a chunk; consecutive parts with the same storage share an encoder. */
static heft_status open_encoder(const heft_appender *a, heft_append_chunk *s,
                                const heft_storage *storage, heft_error *err)
{
    const heft_codec *codec = heft_host_codec(a->p->host, storage->encoding);
    if (s->codec == codec && s->level == storage->level)
        return HEFT_OK;
    close_encoder(s);
    s->codec = codec;
    s->level = storage->level;
    heft_status st = codec->encoder_open(&s->encoder, storage->level, a->p->plan.frame_checksums,
                                         err);
    if (st)
        close_encoder(s);
    return st;
}

static heft_status encode(const heft_appender *a, heft_append_chunk *s, heft_error *err)
{
    const heft_storage *storage = &a->p->plan.storage[s->part];
    s->encoded = a->encoded_capacity;
    if (storage->encoding == HEFT_RAW ||
        (!s->len && !heft_planner_requires_encoding(a->p, s->part)))
        return HEFT_OK;
    HEFT_TRY(open_encoder(a, s, storage, err));
    return s->codec->encode(s->encoder, s->out, &s->encoded, s->raw, s->len, err);
}

/* ---- batches ---- */

typedef struct batch {
    heft_appender *a;
    heft_append_fill fill;
    void *ctx;
} batch;

static void encode_chunk(void *arg, size_t i)
{
    const batch *b = arg;
    heft_append_chunk *s = &b->a->chunks[i];
    s->status = b->fill ? b->fill(b->ctx, (uint32_t)i, &s->err) : HEFT_OK;
    if (!s->status)
        s->status = encode(b->a, s, &s->err);
}

void heft_append_encode_batch(heft_appender *a, uint32_t n, heft_append_fill fill, void *ctx)
{
    batch b = { a, fill, ctx };
    heft_host_run(a->p->host, n, encode_chunk, &b);
}

heft_status heft_append_write_batch(heft_appender *a, uint32_t n, heft_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        const heft_append_chunk *s = &a->chunks[i];
        if (s->status && err)
            *err = s->err;
        HEFT_TRY(s->status ? s->status : heft_append_write(a, s, err));
    }
    return HEFT_OK;
}

/* ---- opening and closing ---- */

/* Set the capacity that an encoded chunk needs with any encoding in use. */
static void set_encoded_capacity(heft_appender *a)
{
    const heft_plan *plan = &a->p->plan;
    bool is_asked[HEFT_ENCODING_OTHER] = { false };
    /* Parts may be added later with any encoding. */
    bool may_be_any = a->p->format->caps & HEFT_CAN_APPEND;
    a->encoded_capacity = a->chunk_bytes;
    for (uint32_t i = 0; i < plan->order_count; i++)
        is_asked[plan->storage[plan->order[i]].encoding] = true;
    for (heft_encoding e = HEFT_RAW + 1; e < HEFT_ENCODING_OTHER; e++) {
        const heft_codec *codec = heft_host_codec(a->p->host, e);
        bool is_used = (is_asked[e] || may_be_any) && codec && HEFT_HAS(codec, encoder_close);
        if (is_used && codec->bound(a->chunk_bytes) > a->encoded_capacity)
            a->encoded_capacity = codec->bound(a->chunk_bytes);
    }
}

heft_status heft_append_open(heft_appender *a, heft_planner *p, heft_sink *sink, heft_error *err)
{
    const heft_allocator *al = p->host->allocator;
    uint32_t threads = p->host->executor ? p->host->executor->width : 1;
    *a = (heft_appender){ .p = p, .sink = sink, .at = p->plan.data_end, .err = err };
    a->mem = (heft_memory){ p->host->allocator, UINT64_MAX, 0 };
    a->chunk_bytes = p->plan.frame_bytes ? p->plan.frame_bytes : CHUNK;
    set_encoded_capacity(a);
    a->chunk_count = 2 * threads < HEFT_APPEND_MAX_CHUNKS ? 2 * threads
                                                          : (uint32_t)HEFT_APPEND_MAX_CHUNKS;
    for (uint32_t i = 0; i < a->chunk_count; i++) {
        heft_append_chunk *s = &a->chunks[i];
        s->raw = heft_alloc(al, a->chunk_bytes, 64);
        s->out = heft_alloc(al, a->encoded_capacity, 64);
        HEFT_TRY(s->raw && s->out ? HEFT_OK : heft_error_no_memory(err, "to compress"));
    }
    return HEFT_OK;
}

void heft_append_close(heft_appender *a)
{
    if (!a->p)
        return;
    const heft_allocator *al = a->p->host->allocator;
    for (uint32_t i = 0; i < a->chunk_count; i++) {
        heft_append_chunk *s = &a->chunks[i];
        heft_free(al, s->raw, a->chunk_bytes, 64);
        heft_free(al, s->out, a->encoded_capacity, 64);
        close_encoder(s);
    }
    heft_running_digest_close(&a->part_digest);
    heft_vec_free(&a->mem, &a->frames, sizeof(heft_frame));
}
