/* decode_prefix.c - what a compressed part begins with, for parsers whose headers lie in there. */
#include "core/read/decode.h"

enum { PIECE = 4096 }; /* stored bytes asked for at a time */

typedef struct prefix {
    heft_in *in;
    const heft_codec *codec;
    void *state;
    heft_range left; /* stored bytes not decoded yet */
    bool whole;
} prefix;

/* A step: more of out, or of the stored bytes is wanted. */
static heft_status decode_some(prefix *p, uint8_t *out, size_t *len, bool *done)
{
    uint64_t have = 0, want = p->left.length < PIECE ? p->left.length : PIECE;
    const uint8_t *at = p->in->window(p->in, p->left.offset, want, &have);
    size_t took = (size_t)have;
    if (want && !have) {
        p->in->need(p->in, p->left.offset, want);
        return HEFT_AGAIN;
    }
    heft_status st = p->codec->decode(p->state, at, &took, out, len, &p->whole, p->in->err);
    if (st) {
        if (p->in->err && st == HEFT_E_FORMAT)
            p->in->err->offset = p->left.offset;
        return st;
    }
    p->left.offset += took;
    p->left.length -= took;
    *done = !p->left.length && !*len;
    if (!took && !*len && !*done)
        return heft_error_set(p->in->err, HEFT_E_FORMAT, p->left.offset,
                              "the compressed bytes decode to nothing more");
    return HEFT_OK;
}

heft_status heft_inbox_decode(heft_in *in, heft_encoding e, heft_range stored, void *out,
                              size_t *len)
{
    const heft_inbox *b = (const heft_inbox *)in;
    prefix p = { .in = in, .left = stored, .whole = true };
    size_t made = 0;
    bool done = false;
    p.codec = heft_host_codec(b->host, e);
    if (!p.codec)
        return heft_error_set(in->err, HEFT_E_UNSUPPORTED, stored.offset,
                              "this build cannot decode what is compressed here");
    heft_status st = p.codec->open(&p.state, *len, in->err);
    while (!st && !done && made < *len) {
        size_t n = *len - made;
        st = decode_some(&p, (uint8_t *)out + made, &n, &done);
        made += st ? 0 : n;
    }
    if (p.state)
        p.codec->close(p.state);
    *len = made;
    return st;
}
