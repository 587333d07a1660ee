/* logical_source.c - a source whose bytes are decoded when they are read.
 *
 * A decoder keeps windows on the parts of a tensor, and what it has turned. Some decoders stay with
 * the source, so that reads one after the other do no work twice: each thread that reads a span of
 * a tensor gets the decoder with which it has begun. */
#include "logical/logical.h"

#include "base/bisect.h"
#include "base/checked_math.h"
#include "base/error.h"

enum { KEPT = 16, ALIGN = 64 };
static const char purpose[] = "to decode quantised tensors";

typedef struct kept_decoder {
    bool is_taken;
    const heft_decoding *d; /* NULL: was not used */
    uint64_t next;          /* the byte of the tensor after those that were read last */
    uint64_t last_use;
    heft_decoder r; /* of the thread that has taken it */
} kept_decoder;

typedef struct logical_source {
    heft_source base;
    const heft_allocator *al;
    heft_logical_tensor *tensors;
    uint32_t count;
    size_t bytes;  /* all tensors */
    uint32_t lock; /* guards the decoders and what follows */
    uint32_t taken, most_taken;
    uint64_t uses;
    kept_decoder kept[KEPT];
} logical_source;

/* True if a decoder would read the matrix again that this one has in memory. */
static bool has_matrix(const kept_decoder *k, const heft_decoding *d)
{
    return k->d == d && (d->by_column || d->is_transposed) && !k->r.window[HEFT_ROLE_WEIGHT].lent;
}

/* Return a free decoder: the one that ended at `from`; otherwise, since other threads go on with
 * those that were used recently, the one that was used least recently of one more than there are
 * threads.  NULL: none is free. */
static kept_decoder *find_decoder(logical_source *s, const heft_decoding *d, uint64_t from)
{
    enum { LARGE = 16 << 20 };
    kept_decoder *unused = NULL, *oldest = NULL, *same = NULL;
    uint32_t used = 0;
    for (kept_decoder *k = s->kept; k < s->kept + KEPT; k++) {
        used += k->d != NULL;
        if (k->is_taken)
            continue;
        if (k->d == d && k->next == from)
            return k;
        if (!k->d)
            unused = unused ? unused : k;
        else if (!oldest || k->last_use < oldest->last_use)
            oldest = k;
        same = k->d && has_matrix(k, d) ? k : same;
    }
    bool is_large = oldest && oldest->r.window[HEFT_ROLE_WEIGHT].capacity > LARGE;
    bool grows = unused && (!oldest || (used <= s->most_taken && !is_large));
    return same ? same : grows ? unused : oldest;
}

/* Take a decoder for bytes from `from` on; NULL: all are taken. */
static kept_decoder *take_decoder(logical_source *s, const heft_decoding *d, uint64_t from)
{
    heft_spin_lock(&s->lock);
    kept_decoder *k = find_decoder(s, d, from);
    if (k) {
        k->is_taken = true;
        k->d = d;
        k->last_use = ++s->uses;
        s->taken++;
        s->most_taken = s->taken > s->most_taken ? s->taken : s->most_taken;
    }
    heft_spin_unlock(&s->lock);
    return k;
}

static void return_decoder(logical_source *s, kept_decoder *k, uint64_t next)
{
    heft_spin_lock(&s->lock);
    k->is_taken = false;
    k->next = next;
    s->taken--;
    heft_spin_unlock(&s->lock);
}

static heft_status read_tensor(logical_source *s, const heft_logical_tensor *t, uint64_t from,
                               uint8_t *buf, size_t len, heft_error *err)
{
    kept_decoder *kept = take_decoder(s, &t->d, from);
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
        return_decoder(s, kept, from + len);
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
