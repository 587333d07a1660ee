/* decode_prefix.c - decodes the first bytes of a compressed part, for parsers whose headers lie
 * inside it. */
#include "core/read/decode.h"

enum { CHUNK = 4096 }; /* stored bytes requested at a time */

heft_status heft_input_decode(heft_window *in, heft_encoding e, heft_range stored, void *out,
                              size_t *len)
{
    const heft_codec *codec = heft_host_codec(((const heft_input *)in)->host, e);
    void *state = NULL;
    size_t produced = 0;
    bool frame_ended = true, done = false;
    if (!codec)
        return heft_error_set(in->err, HEFT_E_UNSUPPORTED, stored.offset,
                              "this build has no decoder for the compressed data here");
    heft_status st = codec->open(&state, *len, in->err);
    while (!st && !done && produced < *len) {
        uint64_t have = 0, want = stored.length < CHUNK ? stored.length : CHUNK;
        const uint8_t *data = in->window(in, stored.offset, want, &have);
        size_t consumed = (size_t)have, room_left = *len - produced;
        if (want && !have) {
            in->need(in, stored.offset, want);
            st = HEFT_AGAIN;
            break;
        }
        st = codec->decode(state, data, &consumed, (uint8_t *)out + produced, &room_left,
                           &frame_ended, in->err);
        if (in->err && st == HEFT_E_FORMAT)
            in->err->offset = stored.offset;
        if (st)
            break;
        stored.offset += consumed;
        stored.length -= consumed;
        produced += room_left;
        done = !stored.length && !room_left;
        if (!consumed && !room_left && !done)
            st = heft_error_set(in->err, HEFT_E_FORMAT, stored.offset,
                                "the compressed data are corrupt or truncated");
    }
    if (state)
        codec->close(state);
    *len = produced;
    return st;
}
