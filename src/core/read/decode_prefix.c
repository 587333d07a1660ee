/* decode_prefix.c - what a compressed part begins with, for parsers whose headers lie in there. */
#include "core/read/decode.h"

enum { PIECE = 4096 }; /* stored bytes asked for at a time */

heft_status heft_input_decode(heft_window *in, heft_encoding e, heft_range stored, void *out,
                              size_t *len)
{
    const heft_codec *codec = heft_host_codec(((const heft_input *)in)->host, e);
    void *state = NULL;
    size_t made = 0;
    bool whole = true, done = false;
    if (!codec)
        return heft_error_set(in->err, HEFT_E_UNSUPPORTED, stored.offset,
                              "this build cannot decode what is compressed here");
    heft_status st = codec->open(&state, *len, in->err);
    while (!st && !done && made < *len) {
        uint64_t have = 0, want = stored.length < PIECE ? stored.length : PIECE;
        const uint8_t *at = in->window(in, stored.offset, want, &have);
        size_t took = (size_t)have, n = *len - made;
        if (want && !have) {
            in->need(in, stored.offset, want);
            st = HEFT_AGAIN;
            break;
        }
        st = codec->decode(state, at, &took, (uint8_t *)out + made, &n, &whole, in->err);
        if (in->err && st == HEFT_E_FORMAT)
            in->err->offset = stored.offset;
        if (st)
            break;
        stored.offset += took;
        stored.length -= took;
        made += n;
        done = !stored.length && !n;
        if (!took && !n && !done)
            st = heft_error_set(in->err, HEFT_E_FORMAT, stored.offset,
                                "the compressed bytes decode to nothing more");
    }
    if (state)
        codec->close(state);
    *len = made;
    return st;
}
