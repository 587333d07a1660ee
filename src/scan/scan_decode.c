/* scan_decode.c - decodes compressed bytes of unknown length, as far as there is memory. */
#include "base/error.h"
#include "core/read/file.h"
#include "scan/scan.h"

enum { FIRST = 64 << 10, STEP = 1 << 20 };

static heft_status grow(heft_scan_decoded *d, heft_scan *s, uint64_t most)
{
    if (d->size < d->capacity)
        return HEFT_OK;
    uint64_t capacity = d->capacity ? d->capacity * 2 : FIRST;
    capacity = capacity < most ? capacity : most;
    void *bytes = capacity < SIZE_MAX
                      ? heft_mem_resize(&s->mem, d->bytes, (size_t)d->capacity, (size_t)capacity)
                      : NULL;
    if (!bytes)
        return heft_error_no_memory(s->err, "to unpack compressed data");
    d->bytes = bytes;
    d->capacity = capacity;
    return HEFT_OK;
}

/* Keep decoded bytes, except those to be dropped. */
static void keep_decoded(heft_scan_decoded *d, size_t produced)
{
    size_t n = produced < d->to_drop ? produced : (size_t)d->to_drop;
    uint8_t *to = d->bytes + d->size;
    if (n)
        memmove(to, to + n, produced - n);
    d->to_drop -= n;
    d->dropped += n;
    d->size += produced - n;
}

static uint64_t decoded(const heft_scan_decoded *d)
{
    return d->dropped + d->size;
}

typedef struct decoding {
    heft_scan *s;
    heft_scan_decoded *out;
    const heft_codec *codec;
    void *state;
    const uint8_t *encoded;
    uint64_t left;
    bool has_ended;
} decoding;

/* Decode at most `most` bytes; damage ends the decoding. */
static heft_status decode_some(decoding *x, uint64_t most)
{
    heft_error ignored;
    heft_scan_decoded *d = x->out;
    size_t consumed = x->left < SIZE_MAX ? (size_t)x->left : SIZE_MAX;
    size_t produced = (size_t)(d->capacity - d->size < most ? d->capacity - d->size : most);
    bool whole = false;
    heft_status st = x->codec->decode(x->state, x->encoded, &consumed, d->bytes + d->size,
                                      &produced, &whole, &ignored);
    if (st == HEFT_E_NOMEM)
        return heft_error_no_memory(x->s->err, "to unpack compressed data");
    d->is_damaged = st;
    d->is_truncated = !st && !whole && !consumed && !produced;
    x->has_ended = st || whole || d->is_truncated;
    if (st)
        return HEFT_OK;
    keep_decoded(d, produced);
    d->consumed += consumed;
    x->encoded += consumed;
    x->left -= consumed;
    return HEFT_OK;
}

/* Decode at most `most` bytes in all; those after the first `steps` one at a time. */
static heft_status decode_from_start(decoding *x, uint64_t most, uint64_t steps)
{
    heft_status st = x->codec->open(&x->state, HEFT_UNKNOWN_LENGTH, x->s->err);
    while (!st && !x->has_ended && x->out->size < most) {
        uint64_t left = decoded(x->out) < steps ? steps - decoded(x->out) : 1;
        st = grow(x->out, x->s, most);
        if (!st)
            st = decode_some(x, left < STEP ? left : STEP);
    }
    x->out->is_cut = !x->has_ended;
    if (x->state)
        x->codec->close(x->state);
    x->state = NULL;
    return st;
}

heft_status heft_scan_decode(heft_scan_decoded *out, heft_scan *s, heft_encoding e,
                             const uint8_t *encoded, uint64_t size, uint64_t most)
{
    decoding x = { .s = s, .out = out, .encoded = encoded, .left = size };
    uint64_t size_before = out->size, to_drop = out->to_drop, dropped = out->dropped;
    x.codec = heft_host_codec(s->host, e);
    out->has_no_decoder = !x.codec;
    if (!x.codec)
        return HEFT_OK;
    heft_status st = decode_from_start(&x, most, UINT64_MAX);
    if (st || !out->is_damaged)
        return st;

    /* The last step has lost the bytes before the damage, which a program would have seen. */
    decoding again = { .s = s, .out = out, .codec = x.codec, .encoded = encoded, .left = size };
    uint64_t steps = decoded(out),
             end = out->size < UINT64_MAX - STEP ? out->size + STEP : UINT64_MAX;
    out->size = size_before;
    out->to_drop = to_drop;
    out->dropped = dropped;
    out->consumed = 0;
    st = decode_from_start(&again, end < most ? end : most, steps);
    out->is_damaged = true;
    out->is_cut = false;
    return st;
}
