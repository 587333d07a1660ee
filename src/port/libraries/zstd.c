/* zstd.c - encode and decode zstd parts, by libzstd. */
#include "port/port.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

/* Logarithm of the largest window that zstd writes without special options; its highest level
 * declares this window even for a short stream.  The part of the window that the data do not fill
 * takes no memory. */
enum { MAX_WINDOW_LOG = 27 };
/* Logarithm of the largest window that zstd writes with special options. */
enum { LARGEST_WINDOW_LOG = 31 };

static heft_status fail(heft_error *err, size_t code)
{
    if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
        return heft_error_no_memory(err, "for zstd");
    return heft_error_plain(err, HEFT_E_FORMAT, "zstd: %s", ZSTD_getErrorName(code));
}

/* ---- decoding ---- */

enum {
    HEADER = 18, /* bytes of the longest frame header */
    SINGLE_SEGMENT = 0x20,
};

typedef struct decoder {
    ZSTD_DCtx *d;
    uint64_t decoded;       /* bytes of the part, or an upper bound */
    uint8_t header[HEADER]; /* the first bytes of the current frame */
    size_t header_len;
} decoder;

static uint64_t number(const uint8_t *p, size_t len)
{
    uint64_t n = 0;
    for (size_t i = 0; i < len; i++)
        n |= (uint64_t)p[i] << 8 * i;
    return n;
}

/* Return the window that a frame declares (RFC 8878, 3.1.1.1): in a descriptor, or by the size of
 * the content if the frame is a single segment. */
static uint64_t window_of(const decoder *s)
{
    static const uint8_t id_bytes[] = { 0, 1, 2, 4 }, size_bytes[] = { 1, 2, 4, 8 };
    uint8_t descriptor = s->header[4], window = s->header[5];
    if (descriptor & SINGLE_SEGMENT)
        return number(s->header + 5 + id_bytes[descriptor & 3], size_bytes[descriptor >> 6]);
    uint64_t base = (uint64_t)1 << (10 + (window >> 3));
    return base + base / 8 * (window & 7);
}

static heft_status open_decoder(void **state, uint64_t decoded, heft_error *err)
{
    decoder *s = calloc(1, sizeof *s);
    *state = s;
    if (s)
        s->d = ZSTD_createDCtx();
    if (!s || !s->d)
        return heft_error_no_memory(err, "for zstd");
    s->decoded = decoded;
    ZSTD_DCtx_setParameter(s->d, ZSTD_d_windowLogMax, MAX_WINDOW_LOG);
    return HEFT_OK;
}

static heft_status decoding_failed(const decoder *s, size_t code, heft_error *err)
{
    if (ZSTD_getErrorCode(code) != ZSTD_error_frameParameter_windowTooLarge)
        return fail(err, code);
    bool is_single_segment = s->header[4] & SINGLE_SEGMENT;
    uint64_t window = window_of(s);
    if (is_single_segment ? window > s->decoded : window >> (LARGEST_WINDOW_LOG + 1))
        return heft_error_plain(err, HEFT_E_FORMAT,
                                "zstd: a frame declares a window of %U bytes, its part has %U",
                                window, s->decoded);
    heft_status st = heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                      "zstd: a frame needs a window of %U bytes, more than the "
                                      "limit of %U; compress the data again without --long",
                                      window, (uint64_t)1 << MAX_WINDOW_LOG);
    return heft_error_rule(err, st, "heft/limit-window");
}

static heft_status decode(void *state, const void *in, size_t *in_len, void *out, size_t *out_len,
                          bool *whole, heft_error *err)
{
    decoder *s = state;
    ZSTD_inBuffer from = { in, *in_len, 0 };
    ZSTD_outBuffer to = { out, *out_len, 0 };
    size_t n = HEADER - s->header_len < *in_len ? HEADER - s->header_len : *in_len;
    if (n)
        memcpy(s->header + s->header_len, in, n);
    s->header_len += n;
    size_t left = ZSTD_decompressStream(s->d, &to, &from);
    if (ZSTD_isError(left))
        return decoding_failed(s, left, err);
    if (!left)
        s->header_len = 0;
    /* a call without input after the end of a frame does not start a new frame */
    *whole = !*in_len && *whole ? !to.pos : !left;
    *in_len = from.pos;
    *out_len = to.pos;
    return HEFT_OK;
}

static void close_decoder(void *state)
{
    decoder *s = state;
    if (s)
        ZSTD_freeDCtx(s->d);
    free(s);
}

/* ---- encoding ---- */

static heft_status open_encoder(void **state, int level, bool checksums, heft_error *err)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();
    *state = c;
    if (!c)
        return heft_error_no_memory(err, "for zstd");
    size_t code = ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel,
                                         level ? level : ZSTD_CLEVEL_DEFAULT);
    if (!ZSTD_isError(code))
        code = ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, checksums);
    if (ZSTD_isError(code))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "zstd: %s", ZSTD_getErrorName(code));
    return HEFT_OK;
}

static heft_status encode(void *state, void *out, size_t *out_len, const void *in, size_t in_len,
                          heft_error *err)
{
    size_t n = ZSTD_compress2(state, out, *out_len, in, in_len);
    if (ZSTD_isError(n))
        return fail(err, n);
    *out_len = n;
    return HEFT_OK;
}

static void close_encoder(void *state)
{
    ZSTD_freeCCtx(state);
}

const heft_codec heft_zstd_codec = {
    .size = sizeof(heft_codec),
    .encoding = HEFT_ZSTD,
    .name = "zstd",
    .open = open_decoder,
    .decode = decode,
    .close = close_decoder,
    .bound = ZSTD_compressBound,
    .encoder_open = open_encoder,
    .encode = encode,
    .encoder_close = close_encoder,
};
