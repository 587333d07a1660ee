/* logical_source.c - a source whose bytes are decoded when they are read.
 *
 * A decoder keeps windows on the parts of a tensor, and what it has turned. Some decoders stay with
 * the source, so that reads one after the other do no work twice: each thread that reads a span of
 * a tensor gets the decoder with which it has begun. */
#include "logical/logical.h"

#include "base/bisect.h"
#include "base/checked_math.h"
#include "base/error.h"
#include "base/kept.h"

enum { ALIGN = 64 };
static const char purpose[] = "to decode quantised tensors";

typedef struct logical_source {
    heft_source base;
    const heft_allocator *al;
    heft_logical_tensor *tensors;
    uint32_t count;
    size_t bytes; /* all tensors */
    heft_kept pool;
    heft_decoder kept[HEFT_KEPT];
} logical_source;

/* True if a decoder would read the matrix again that this one has in memory. */
static bool has_matrix(const void *ctx, uint32_t i)
{
    const heft_decoder *r = &((const logical_source *)ctx)->kept[i];
    return r->d && (r->d->by_column || r->d->is_transposed) && !r->window[HEFT_ROLE_WEIGHT].lent;
}

static bool is_large(const void *ctx, uint32_t i)
{
    enum { LARGE = 16 << 20 };
    return ((const logical_source *)ctx)->kept[i].window[HEFT_ROLE_WEIGHT].capacity > LARGE;
}

static heft_status read_tensor(logical_source *s, const heft_logical_tensor *t, uint64_t from,
                               uint8_t *buf, size_t len, heft_error *err)
{
    heft_kept_wish wish = {
        .of = &t->d, .from = from, .has_more = has_matrix, .is_large = is_large, .ctx = s
    };
    uint32_t kept = heft_kept_take(&s->pool, &wish);
    heft_decoder *r = kept < HEFT_KEPT ? &s->kept[kept] : heft_alloc(s->al, sizeof *r, ALIGN);
    if (!r)
        return heft_error_no_memory(err, purpose);
    if (kept == HEFT_KEPT)
        *r = (heft_decoder){ .d = NULL };
    heft_decoder_begin(r, &t->d, err);
    heft_file_enter(t->d.f);
    heft_status st = heft_file_leave_after(t->d.f,
                                           heft_decoder_read_bytes(r, t->as, from, buf, len), err);
    if (kept < HEFT_KEPT) {
        heft_kept_return(&s->pool, kept, from + len);
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
    for (uint32_t i = 0; i < HEFT_KEPT; i++)
        heft_decoder_free(&s->kept[i], s->al);
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
