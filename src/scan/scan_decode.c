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
    d->size += produced;
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
        uint64_t left = x->out->size < steps ? steps - x->out->size : 1;
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
    uint64_t before = out->size;
    x.codec = heft_host_codec(s->host, e);
    out->has_no_decoder = !x.codec;
    if (!x.codec)
        return HEFT_OK;
    heft_status st = decode_from_start(&x, most, UINT64_MAX);
    if (st || !out->is_damaged)
        return st;

    /* The last step has lost the bytes before the damage, which a program would have seen. */
    decoding again = { .s = s, .out = out, .codec = x.codec, .encoded = encoded, .left = size };
    uint64_t steps = out->size, end = steps < UINT64_MAX - STEP ? steps + STEP : UINT64_MAX;
    out->size = before;
    out->consumed = 0;
    st = decode_from_start(&again, end < most ? end : most, steps);
    out->is_damaged = true;
    out->is_cut = false;
    return st;
}
