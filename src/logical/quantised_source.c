/* quantised_source.c - a source whose bytes are encoded when they are read.
 *
 * An encoder keeps the magnitudes of a row of blocks. Some encoders stay with the source, so that
 * reads of the same tensor, one after the other, find them once. */
#include "base/bisect.h"
#include "base/error.h"
#include "logical/quantisation.h"

enum { KEPT = 16, ALIGN = 64 };

typedef struct kept_encoder {
    size_t is_taken; /* atomic */
    heft_encoder r;
} kept_encoder;

typedef struct quantised_source {
    heft_source base;
    const heft_quantisation *q;
    kept_encoder kept[KEPT];
    const heft_allocator *al;
} quantised_source;

/* Take an encoder, preferably one that was used for the tensor; NULL: all are taken. */
static kept_encoder *take_encoder(quantised_source *s, const heft_encoded *e)
{
    for (int is_any = 0; is_any < 2; is_any++)
        for (int i = 0; i < KEPT; i++) {
            kept_encoder *k = &s->kept[i];
            if (!heft_atomic_publish_first(&k->is_taken, 1))
                continue;
            if (is_any || k->r.e == e)
                return k;
            heft_atomic_publish(&k->is_taken, 0);
        }
    return NULL;
}

static heft_status read_part(quantised_source *s, const heft_encoded *e, uint32_t k, uint64_t from,
                             uint8_t *buf, size_t len, heft_error *err)
{
    kept_encoder *kept = take_encoder(s, e);
    heft_encoder *r = kept ? &kept->r : heft_alloc(s->al, sizeof *r, ALIGN);
    if (!r)
        return heft_error_no_memory(err, "to quantise a tensor");
    if (!kept)
        memset(r, 0, sizeof *r);
    heft_quality *quality = s->q->opt.quality;
    heft_pair_sums sums = { .pairs = 0 };
    heft_encoder_begin(r, e, err);
    r->sums = quality && quality->is_writing && e->encoder->scheme ? &sums : NULL;
    heft_file_enter(e->f);
    heft_status st = heft_file_leave_after(e->f, heft_encoder_read(r, k, from, buf, len), err);
    r->sums = NULL;
    if (quality)
        heft_quality_collect(quality, e->quality, &sums);
    if (kept) {
        heft_atomic_publish(&kept->is_taken, 0);
    } else {
        heft_encoder_free(r, s->al);
        heft_free(s->al, r, sizeof *r, ALIGN);
    }
    return st;
}

static heft_status read_encoded(heft_source *base, uint64_t offset, void *buf, size_t len,
                                heft_error *err)
{
    quantised_source *s = (quantised_source *)base;
    uint8_t *to = buf;
    heft_bisect b = { .end = s->q->count };
    while (heft_bisect_next(&b)) {
        const heft_encoded *e = &s->q->all[b.mid];
        const heft_encoded_part *last = &e->parts[e->part_count - 1];
        heft_bisect_narrow(&b, last->start + last->bytes <= offset);
    }
    heft_status st = HEFT_OK;
    for (const heft_encoded *e = s->q->all + b.first; len && !st; e++)
        for (uint32_t k = 0; k < e->part_count && len && !st; k++) {
            const heft_encoded_part *p = &e->parts[k];
            if (offset >= p->start + p->bytes)
                continue;
            uint64_t from = offset - p->start, left = p->bytes - from;
            size_t n = left < len ? (size_t)left : len;
            st = read_part(s, e, k, from, to, n, err);
            to += n;
            offset += n;
            len -= n;
        }
    return st;
}

static void close_encoders(heft_source *base)
{
    quantised_source *s = (quantised_source *)base;
    for (int i = 0; i < KEPT; i++)
        heft_encoder_free(&s->kept[i].r, s->al);
    heft_free(s->al, s, sizeof *s, ALIGN);
}

static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                     .read = read_encoded,
                                     .close = close_encoders };

heft_status heft_quantised_source(heft_source **out, heft_quantisation *q, heft_error *err)
{
    const heft_allocator *al = q->f->host->allocator;
    quantised_source *s = heft_alloc(al, sizeof *s, ALIGN);
    *out = NULL;
    if (!s)
        return heft_error_no_memory(err, "to quantise");
    memset(s, 0, sizeof *s);
    s->q = q;
    s->al = al;
    s->base.ops = &ops;
    if (q->count) {
        const heft_encoded *e = &q->all[q->count - 1];
        s->base.size = e->parts[e->part_count - 1].start + e->parts[e->part_count - 1].bytes;
    }
    *out = &s->base;
    return HEFT_OK;
}
