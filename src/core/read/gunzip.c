/* gunzip.c - opens a file that is compressed with gzip (RFC 1952) as a whole.  The content is
 * decoded once, when the file is opened, because parsers and tensors need random access.
 *
 *    0  1F 8B, method 8, flags, u32 time, extra flags, system
 *   10  by flags: u16 n and n bytes; a name and a comment, each up to a NUL; u16 checksum of the
 *       header
 *       the deflated content
 *   -8  u32 CRC-32 of the content, u32 its length modulo 2^32
 */
#include "core/read/decode.h"

#include "base/crc.h"
#include "core/read/strided.h"

enum {
    CHUNK = 64 << 10,
    MAX_RATIO = 64,            /* limit of content per compressed byte … */
    ALWAYS_ALLOWED = 64 << 20, /* … for more content than this */
    /* Up to this ratio the length in the trailer is trusted and memory allocated; beyond, the
     * content is counted first. */
    TRUSTED_RATIO = 16,
    DEFLATE_RATIO = 1032, /* DEFLATE cannot expand further: 258 bytes need two bits */
    PROBE_BYTES = 512     /* the header of a tar archive */
};

static const char header_name[] = "the gzip header";

/* ---- the gzip header and trailer ---- */

static void skip_text(heft_cur *c)
{
    enum { MOST = 64 << 10 };
    uint32_t n = 0;
    while (heft_cur_u8(c) && !c->st)
        if (++n > MOST)
            heft_cur_fail(c, "%s: its name or comment exceeds %U bytes", header_name,
                          (uint64_t)MOST);
}

static heft_status read_gzip_header(heft_file *f)
{
    enum {
        FIXED = 10,
        TRAILER = 8,
        HEADER_SUM = 2,
        EXTRA = 4,
        NAME = 8,
        COMMENT = 16,
        RESERVED = 0xE0
    };
    heft_window *in = &f->input.in;
    heft_cur c = heft_cur_open(in, 0, in->size, header_name);
    const uint8_t *p = heft_cur_take(&c, FIXED);
    uint8_t flags = p ? p[3] : 0;
    if (flags & RESERVED || (p && p[2] != 8))
        heft_cur_fail(&c, "%s: unknown compression method or flags", header_name);
    if (flags & EXTRA)
        heft_cur_take(&c, heft_cur_u16(&c));
    if (flags & NAME)
        skip_text(&c);
    if (flags & COMMENT)
        skip_text(&c);
    if (flags & HEADER_SUM)
        heft_cur_take(&c, 2);
    uint64_t at = heft_cur_pos(&c);
    if (c.st)
        return c.st;
    if (in->size - at < TRAILER)
        return heft_cur_fail(&c, "gzip: the file is truncated: its 8-byte trailer is missing");
    heft_cur inflater_close = heft_cur_whole(in, in->size - TRAILER, TRAILER, "the gzip trailer");
    f->gzip = (heft_gzip_content){ .deflated = { at, in->size - TRAILER - at } };
    f->gzip.crc = heft_cur_u32(&inflater_close);
    f->gzip.isize = heft_cur_u32(&inflater_close);
    return inflater_close.st;
}

heft_status heft_gunzip_detect(heft_file *f, heft_error *err)
{
    heft_window *in = &f->input.in;
    uint8_t head[PROBE_BYTES];
    uint64_t have;
    size_t len = sizeof head;
    const uint8_t *p = in->window(in, 0, 3, &have);
    /* The content of a member would take the place of the archive, and of what is known of it. */
    if (have < 3 || p[0] != 0x1F || p[1] != 0x8B || heft_archive_of(f))
        return HEFT_OK;
    in->err = err;
    heft_status st = read_gzip_header(f);
    if (!st)
        st = heft_window_decode(in, HEFT_DEFLATE, f->gzip.deflated, head, &len);
    in->err = NULL;
    if (st == HEFT_AGAIN || st == HEFT_E_NOMEM)
        return st;
    if (st) /* not a supported format */
        return HEFT_OK;
    const heft_format *found = heft_detect(head, len, head + len, 0, f->gzip.isize);
    found = found && found->may_be_gzipped ? found : NULL;
    bool is_archive = f->source && heft_archive_is_tar(head, len);
    bool is_compressed = found ? !f->format || f->format == found : is_archive && !f->format;
    if (is_compressed && !f->source) { /* decoding needs all the bytes */
        heft_cur all = heft_cur_whole(in, 0, in->size, header_name);
        if (all.st)
            return all.st;
    }
    if (!f->format)
        f->format = found;
    f->gzip.is_compressed = is_compressed;
    return HEFT_OK;
}

/* ---- decoding ---- */

typedef struct inflater {
    heft_file *f;
    const heft_codec *codec;
    void *state;
    uint8_t *buf; /* capacity bytes */
    size_t capacity;
    const uint8_t *in;
    size_t in_len;
    uint64_t fetched, produced;
    uint32_t crc;
    bool stream_ended, has_more; /* has_more: there is content past the expected length */
} inflater;

static heft_status inflater_open(inflater *u, heft_error *err)
{
    const heft_allocator *al = u->f->host->allocator;
    u->codec = heft_host_codec(u->f->host, HEFT_DEFLATE);
    if (!u->codec)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "this build cannot unpack gzip: unpack the file first");
    u->capacity = u->f->gzip.deflated.length < CHUNK ? (size_t)u->f->gzip.deflated.length + 1
                                                     : CHUNK;
    u->buf = heft_alloc(al, u->capacity, 64);
    if (!u->buf)
        return heft_error_no_memory(err, "to unpack gzip");
    return u->codec->open(&u->state, u->f->gzip.isize, err);
}

static void inflater_close(inflater *u)
{
    const heft_allocator *al = u->f->host->allocator;
    if (u->state)
        u->codec->close(u->state);
    heft_free(al, u->buf, u->capacity, 64);
}

/* Return the offset of the trailer: u32 CRC-32 of the content, u32 length modulo 2^32. */
static uint64_t trailer(const heft_file *f)
{
    return f->gzip.deflated.offset + f->gzip.deflated.length;
}

static heft_status refill(inflater *u, heft_error *err)
{
    heft_range deflated = u->f->gzip.deflated;
    uint64_t left = deflated.length - u->fetched;
    size_t n = left < u->capacity ? (size_t)left : u->capacity;
    if (u->in_len || !n)
        return HEFT_OK;
    heft_status st = heft_file_count_read(u->f, HEFT_NONE, n, err);
    if (!st)
        st = heft_file_read_stored(u->f, deflated.offset + u->fetched, u->buf, n, err);
    u->in = u->buf;
    u->in_len = st ? 0 : n;
    u->fetched += n;
    return st;
}

/* Decode up to *len bytes; fewer only at the end of the stream. */
static heft_status inflate_some(inflater *u, uint8_t *out, size_t *len, heft_error *err)
{
    size_t want = *len, produced = 0;
    heft_status st = HEFT_OK;
    while (produced < want && !st &&
           !(u->stream_ended && !u->in_len && u->fetched == u->f->gzip.deflated.length)) {
        st = refill(u, err);
        size_t consumed = u->in_len, n = want - produced;
        if (!st)
            st = u->codec->decode(u->state, u->in, &consumed, out + produced, &n, &u->stream_ended,
                                  err);
        if (!st)
            st = heft_file_count_read(u->f, HEFT_NONE, n, err);
        if (!st && !consumed && !n)
            st = heft_error_set(err, HEFT_E_FORMAT, trailer(u->f),
                                "gzip: the compressed data are truncated");
        if (st)
            break;
        u->in += consumed;
        u->in_len -= consumed;
        produced += n;
    }
    *len = produced;
    u->produced += produced;
    return st;
}

/* Count the bytes of the content, stopping soon after `limit`. */
static heft_status count_content(heft_file *f, uint64_t *len, uint64_t limit, heft_error *err)
{
    uint8_t discarded[4096];
    inflater u = { .f = f };
    size_t n = 1;
    heft_status st = inflater_open(&u, err);
    while (!st && n && u.produced <= limit) {
        n = sizeof discarded;
        st = inflate_some(&u, discarded, &n, err);
    }
    *len = u.produced;
    inflater_close(&u);
    return st;
}

static heft_status read_content(void *ctx, uint8_t *buf, size_t len, heft_error *err)
{
    inflater *u = ctx;
    size_t n = len;
    heft_status st = inflate_some(u, buf, &n, err);
    u->crc = heft_crc32(u->crc, buf, n);
    return st || n == len ? st
                          : heft_error_set(err, HEFT_E_FORMAT, trailer(u->f) + 4,
                                           "gzip: the content is shorter than its trailer states");
}

static heft_status check_end(inflater *u, heft_error *err)
{
    uint8_t more;
    size_t n = 1;
    heft_status st = inflate_some(u, &more, &n, err);
    u->has_more = n;
    if (st || n)
        return st;
    return u->crc == u->f->gzip.crc
               ? HEFT_OK
               : heft_error_set(err, HEFT_E_CHECKSUM, trailer(u->f),
                                "gzip: the CRC-32 in the trailer does not match the content");
}

/* ---- the decoded content as a source ---- */

typedef struct gunzip_source {
    heft_source base;
    heft_spill spill;
} gunzip_source;

static const void *gunzip_map(heft_source *s, uint64_t offset, uint64_t len)
{
    (void)len;
    return ((const gunzip_source *)(const void *)s)->spill.bytes + offset;
}

static heft_status gunzip_state(heft_source *s, heft_error *err)
{
    return heft_spill_state(&((const gunzip_source *)(const void *)s)->spill, err);
}

static heft_status gunzip_read(heft_source *s, uint64_t offset, void *buf, size_t len,
                               heft_error *err)
{
    memcpy(buf, gunzip_map(s, offset, len), len);
    return gunzip_state(s, err);
}

static void gunzip_close(heft_source *s)
{
    gunzip_source *p = (gunzip_source *)(void *)s;
    const heft_allocator *al = p->spill.host->allocator;
    heft_spill_close(&p->spill);
    heft_free(al, p, sizeof *p, 16);
}

static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                     .read = gunzip_read,
                                     .map = gunzip_map,
                                     .check = gunzip_state,
                                     .close = gunzip_close };

/* Decode `len` bytes of content.  *has_more: there are more than that. */
static heft_status fill(gunzip_source *p, heft_file *f, uint64_t len, bool *has_more,
                        heft_error *err)
{
    inflater u = { .f = f };
    heft_status st = inflater_open(&u, err);
    p->spill = (heft_spill){ .host = f->host };
    if (!st)
        st = heft_spill_fill(&p->spill, f->host, NULL, len, read_content, &u, err);
    if (!st)
        st = check_end(&u, err);
    inflater_close(&u);
    *has_more = u.has_more;
    if (st || u.has_more)
        heft_spill_close(&p->spill);
    return st;
}

/* The trailer states the length modulo 2^32.  DEFLATE hardly expands data, so a stated length well
 * below the compressed size has wrapped around; the content is then counted. */
static heft_status fill_content(gunzip_source *p, heft_file *f, heft_error *err)
{
    uint64_t stored = f->gzip.deflated.length, len = f->gzip.isize;
    uint64_t limit = stored > UINT64_MAX / MAX_RATIO ? UINT64_MAX : stored * MAX_RATIO;
    bool has_more = false;
    heft_status st = HEFT_OK;
    limit = limit < ALWAYS_ALLOWED ? (uint64_t)ALWAYS_ALLOWED : limit;
    bool is_plausible = len && heft_div(len, TRUSTED_RATIO) <= stored &&
                        len + (len >> 8) + CHUNK >= stored;
    if (is_plausible)
        st = fill(p, f, len, &has_more, err);
    if (st || (is_plausible && !has_more))
        return st;
    if (heft_div(len, DEFLATE_RATIO) > stored)
        return heft_error_set(err, HEFT_E_FORMAT, trailer(f) + 4,
                              "gzip: %U compressed bytes cannot unpack to the %U bytes of the "
                              "trailer: the file is truncated or damaged",
                              stored, len);
    /* A false length is reported as damage, a true one that is too large as a limit. */
    st = count_content(f, &len, limit, err);
    if (!st && len > limit)
        return heft_error_plain(err, HEFT_E_LIMIT,
                                "gzip: %U compressed bytes unpack to more than %U times that size",
                                stored, (uint64_t)MAX_RATIO);
    if (!st && (!len || (uint32_t)len != f->gzip.isize))
        return heft_error_set(err, HEFT_E_FORMAT, trailer(f) + 4,
                              "gzip: the content has %U bytes, which does not match its trailer",
                              len);
    return st ? st : fill(p, f, len, &has_more, err);
}

heft_status heft_gunzip(heft_file *f, heft_error *err)
{
    const heft_allocator *al = f->host->allocator;
    gunzip_source *p = heft_alloc(al, sizeof *p, 16);
    if (!p)
        return heft_error_no_memory(err, "to unpack gzip");
    heft_status st = fill_content(p, f, err);
    if (st) {
        heft_free(al, p, sizeof *p, 16);
        return st;
    }
    p->base = (heft_source){ &ops, p->spill.len };
    heft_source_close(f->source);
    f->source = &p->base;
    heft_file_use_source(f);
    f->gzip.is_compressed = false;
    f->gzip.was_decompressed = true;
    return HEFT_OK;
}
