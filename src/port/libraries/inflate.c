/* inflate.c - decode deflated parts, by zlib.  There is no encoder. */
#include "port/port.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

typedef struct inflater {
    z_stream z;
    bool ended;
} inflater;

static heft_status open_decoder(void **state, uint64_t decoded, heft_error *err)
{
    inflater *i = calloc(1, sizeof *i);
    (void)decoded;
    *state = NULL;
    if (!i || inflateInit2(&i->z, -MAX_WBITS) !=
                  Z_OK) { /* negative: raw deflate without header and checksum */
        free(i);
        return heft_error_no_memory(err, "for zlib");
    }
    *state = i;
    return HEFT_OK;
}

static uInt clamp_to_uint(size_t len)
{
    return len < UINT_MAX ? (uInt)len : UINT_MAX;
}

static heft_status decode(void *state, const void *in, size_t *in_len, void *out, size_t *out_len,
                          bool *whole, heft_error *err)
{
    inflater *i = state;
    uInt in_size = clamp_to_uint(*in_len), out_size = clamp_to_uint(*out_len);
    if (i->ended && in_size)
        return heft_error_plain(err, HEFT_E_FORMAT,
                                "deflate: extra bytes after the end of the stream");
    i->z.next_in = (z_const Bytef *)in;
    i->z.avail_in = in_size;
    i->z.next_out = out;
    i->z.avail_out = out_size;
    int code = i->ended ? Z_STREAM_END : inflate(&i->z, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR)
        return heft_error_no_memory(err, "for zlib");
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        return heft_error_plain(err, HEFT_E_FORMAT, "deflate: %s",
                                i->z.msg ? i->z.msg : "the stream is corrupt");
    i->ended = code == Z_STREAM_END;
    *whole = i->ended;
    *in_len = in_size - i->z.avail_in;
    *out_len = out_size - i->z.avail_out;
    return HEFT_OK;
}

static void close_decoder(void *state)
{
    inflater *i = state;
    inflateEnd(&i->z);
    free(i);
}

const heft_codec heft_inflate_codec = {
    .size = sizeof(heft_codec),
    .encoding = HEFT_DEFLATE,
    .name = "deflate",
    .open = open_decoder,
    .decode = decode,
    .close = close_decoder,
};
