/* logical_source.c - a source whose bytes are decoded when they are read.
 *
 * A decoder keeps windows on the parts of a tensor. Some decoders stay with the source, so that
 * reads of the same tensor, one after the other, read no byte twice. */
#include "logical/logical.h"

#include "base/bisect.h"
#include "base/checked_math.h"
#include "base/error.h"

enum { KEPT = 16, ALIGN = 64 };
static const char purpose[] = "to decode quantised tensors";

typedef struct kept_decoder {
    size_t is_taken; /* atomic */
    heft_decoder r;
} kept_decoder;

typedef struct logical_source {
    heft_source base;
    const heft_allocator *al;
    heft_logical_tensor *tensors;
    uint32_t count;
    size_t bytes; /* all tensors */
    kept_decoder kept[KEPT];
} logical_source;

/* Take a decoder, preferably one that was used for the tensor; NULL: all are taken. */
static kept_decoder *take_decoder(logical_source *s, const heft_decoding *d)
{
    for (int is_any = 0; is_any < 2; is_any++)
        for (int i = 0; i < KEPT; i++) {
            kept_decoder *k = &s->kept[i];
            if (!heft_atomic_publish_first(&k->is_taken, 1))
                continue;
            if (is_any || k->r.d == d)
                return k;
            heft_atomic_publish(&k->is_taken, 0);
        }
    return NULL;
}

static heft_status read_tensor(logical_source *s, const heft_logical_tensor *t, uint64_t from,
                               uint8_t *buf, size_t len, heft_error *err)
{
    kept_decoder *kept = take_decoder(s, &t->d);
    heft_decoder *r = kept ? &kept->r : heft_alloc(s->al, sizeof *r, ALIGN);
    if (!r)
        return heft_error_no_memory(err, purpose);
    if (!kept)
        *r = (heft_decoder){ .d = NULL };
    heft_decoder_begin(r, &t->d, err);
    heft_file_enter(t->d.f);
    heft_status st = heft_file_leave_after(t->d.f,
                                           heft_decoder_read_bytes(r, t->as, from, buf, len), err);
    if (kept) {
        heft_atomic_publish(&kept->is_taken, 0);
    } else {
        heft_decoder_free(r, s->al);
        heft_free(s->al, r, sizeof *r, ALIGN);
    }
    return st;
}

static heft_status read_decoded(heft_source *base, uint64_t offset, void *buf, size_t len,
                                heft_error *err)
{
    logical_source *s = (logical_source *)base;
    uint8_t *to = buf;
    heft_bisect b = { .end = s->count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, s->tensors[b.mid].start + s->tensors[b.mid].bytes <= offset);
    heft_status st = HEFT_OK;
    for (const heft_logical_tensor *t = s->tensors + b.first; len && !st; t++) {
        uint64_t from = offset - t->start, left = t->bytes - from;
        size_t n = left < len ? (size_t)left : len;
        st = n ? read_tensor(s, t, from, to, n, err) : HEFT_OK;
        to += n;
        offset += n;
        len -= n;
    }
    return st;
}

static void close_decoders(heft_source *base)
{
    logical_source *s = (logical_source *)base;
    for (int i = 0; i < KEPT; i++)
        heft_decoder_free(&s->kept[i].r, s->al);
    heft_free(s->al, s->tensors, s->bytes, ALIGN);
    heft_free(s->al, s, sizeof *s, ALIGN);
}

static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                     .read = read_decoded,
                                     .close = close_decoders };

heft_status heft_logical_source(heft_source **out, heft_logical_tensor *take, uint32_t count,
                                size_t bytes, const heft_allocator *al, heft_error *err)
{
    logical_source *s = heft_alloc(al, sizeof *s, ALIGN);
    *out = NULL;
    if (!s) {
        heft_free(al, take, bytes, ALIGN);
        return heft_error_no_memory(err, purpose);
    }
    *s = (logical_source){ .al = al, .tensors = take, .count = count, .bytes = bytes };
    s->base.ops = &ops;
    s->base.size = count ? take[count - 1].start + take[count - 1].bytes : 0;
    *out = &s->base;
    return HEFT_OK;
}
