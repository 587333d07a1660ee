/* zstd.c - encode and decode zstd parts, by libzstd. */
#include "port/port.h"

#include <zstd.h>
#include <zstd_errors.h>

/* Logarithm of the largest window that zstd writes without special options; its highest level
 * declares this window even for a short stream.  The part of the window that the data do not fill
 * takes no memory. */
enum { MAX_WINDOW_LOG = 27 };

static heft_status fail(heft_error *err, size_t code)
{
    if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
        return heft_error_no_memory(err, "for zstd");
    return heft_error_plain(err, HEFT_E_FORMAT, "zstd: %s", ZSTD_getErrorName(code));
}

static heft_status open_decoder(void **state, uint64_t decoded, heft_error *err)
{
    ZSTD_DCtx *d = ZSTD_createDCtx();
    *state = d;
    if (!d)
        return heft_error_no_memory(err, "for zstd");
    (void)decoded;
    ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, MAX_WINDOW_LOG);
    return HEFT_OK;
}

static heft_status decode(void *state, const void *in, size_t *in_len, void *out, size_t *out_len,
                          bool *whole, heft_error *err)
{
    ZSTD_inBuffer from = { in, *in_len, 0 };
    ZSTD_outBuffer to = { out, *out_len, 0 };
    size_t left = ZSTD_decompressStream(state, &to, &from);
    if (ZSTD_isError(left))
        return fail(err, left);
    /* a call without input after the end of a frame does not start a new frame */
    *whole = !*in_len && *whole ? !to.pos : !left;
    *in_len = from.pos;
    *out_len = to.pos;
    return HEFT_OK;
}

static void close_decoder(void *state)
{
    ZSTD_freeDCtx(state);
}

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
