/* gunzip.c - a file that is compressed as a whole is decoded when it is opened, once: what a parser wants lies
 * anywhere in it, and so do the bytes of tensors.  RFC 1952 describes gzip.
 *
 *     0  1F 8B, method 8, flags, u32 time, extra flags, system
 *    10  by flags: u16 n and n bytes; a name and a comment, each up to a NUL; u16 checksum of the header
 *        the deflated content
 *    -8  u32 CRC-32 of the content, u32 its length modulo 2^32
 */
#include "core/read/decode.h"

#include "base/crc.h"
#include "core/read/spill.h"

enum {
    PIECE = 64 << 10,
    TIMES = 64,     /* what the content may be of the file … */
    ANY = 64 << 20, /* … unless it is no more than this */
    USUAL =
        16, /* times the file's bytes are believed, and memory taken; beyond, bytes are counted first */
    PROBE = 256
};

static const char what[] = "the gzip header";

/* ---- the wrapper ---- */

static void pass_text(heft_cur *c)
{
    enum { MOST = 64 << 10 };
    uint32_t n = 0;
    while (heft_cur_u8(c) && !c->st)
        if (++n > MOST)
            heft_cur_fail(c, "%s: a text of more than %U bytes", what, (uint64_t)MOST);
}

static heft_status read_wrapper(heft_file *f)
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
    heft_cur c = heft_cur_open(in, 0, in->size, what);
    const uint8_t *p = heft_cur_take(&c, FIXED);
    uint8_t flags = p ? p[3] : 0;
    if (flags & RESERVED || (p && p[2] != 8))
        heft_cur_fail(&c, "%s: a method or flags that are not known", what);
    if (flags & EXTRA)
        heft_cur_take(&c, heft_cur_u16(&c));
    if (flags & NAME)
        pass_text(&c);
    if (flags & COMMENT)
        pass_text(&c);
    if (flags & HEADER_SUM)
        heft_cur_take(&c, 2);
    uint64_t at = heft_cur_pos(&c);
    if (c.st)
        return c.st;
    if (in->size - at < TRAILER)
        return heft_cur_fail(&c, "gzip: the checksum at its end is cut short");
    heft_cur end = heft_cur_whole(in, in->size - TRAILER, TRAILER, "the end of gzip");
    f->gzip = (heft_gzip_content){ .where = { at, in->size - TRAILER - at } };
    f->gzip.crc = heft_cur_u32(&end);
    f->gzip.content = heft_cur_u32(&end);
    return end.st;
}

heft_status heft_gunzip_detect(heft_file *f, heft_error *err)
{
    heft_window *in = &f->input.in;
    uint8_t head[PROBE];
    uint64_t have;
    size_t len = sizeof head;
    const uint8_t *p = in->window(in, 0, 3, &have);
    if (have < 3 || p[0] != 0x1F || p[1] != 0x8B)
        return HEFT_OK;
    in->err = err;
    heft_status st = read_wrapper(f);
    if (!st)
        st = heft_window_decode(in, HEFT_DEFLATE, f->gzip.where, head, &len);
    in->err = NULL;
    if (st == HEFT_AGAIN || st == HEFT_E_NOMEM)
        return st;
    if (st) /* of no format, then */
        return HEFT_OK;
    const heft_format *found = heft_detect(head, len, head + len, 0, f->gzip.content);
    found = found && found->may_be_gzipped ? found : NULL;
    bool is_packed = found && (!f->format || f->format == found);
    if (is_packed && !f->source) { /* what is fed is needed as a whole */
        heft_cur all = heft_cur_whole(in, 0, in->size, what);
        if (all.st)
            return all.st;
    }
    if (!f->format)
        f->format = found;
    f->gzip.is_packed = is_packed;
    return HEFT_OK;
}

/* ---- decoding ---- */

typedef struct unpacker {
    heft_file *f;
    const heft_codec *codec;
    void *state;
    uint8_t *buf; /* room bytes */
    size_t room;
    const uint8_t *in;
    size_t in_len;
    uint64_t taken, made;
    uint32_t crc;
    bool whole, has_more; /* has_more: content behind the length that was wanted */
} unpacker;

static heft_status begin(unpacker *u, heft_error *err)
{
    const heft_allocator *al = u->f->host->allocator;
    u->codec = heft_host_codec(u->f->host, HEFT_DEFLATE);
    if (!u->codec)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "this build cannot unpack gzip");
    u->room = u->f->gzip.where.length < PIECE ? (size_t)u->f->gzip.where.length + 1 : PIECE;
    u->buf = heft_alloc(al, u->room, 64);
    if (!u->buf)
        return heft_error_no_memory(err, "to unpack gzip");
    return u->codec->open(&u->state, u->f->gzip.content, err);
}

static void end(unpacker *u)
{
    const heft_allocator *al = u->f->host->allocator;
    if (u->state)
        u->codec->close(u->state);
    heft_free(al, u->buf, u->room, 64);
}

static heft_status refill(unpacker *u, heft_error *err)
{
    heft_range where = u->f->gzip.where;
    uint64_t left = where.length - u->taken;
    size_t n = left < u->room ? (size_t)left : u->room;
    if (u->in_len || !n)
        return HEFT_OK;
    heft_status st = heft_file_bytes(u->f, where.offset + u->taken, u->buf, n, err);
    u->in = u->buf;
    u->in_len = st ? 0 : n;
    u->taken += n;
    return st;
}

/* Up to *len bytes; fewer only at the end of the stream. */
static heft_status unpack_some(unpacker *u, uint8_t *out, size_t *len, heft_error *err)
{
    size_t want = *len, made = 0;
    heft_status st = HEFT_OK;
    while (made < want && !st && !(u->whole && !u->in_len && u->taken == u->f->gzip.where.length)) {
        st = refill(u, err);
        size_t took = u->in_len, n = want - made;
        if (!st)
            st = u->codec->decode(u->state, u->in, &took, out + made, &n, &u->whole, err);
        if (st)
            break;
        if (!took && !n)
            return heft_error_plain(err, HEFT_E_FORMAT, "gzip: the content is cut short");
        u->in += took;
        u->in_len -= took;
        made += n;
    }
    *len = made;
    u->made += made;
    return st;
}

/* How long the content is, at most `most` and a little. */
static heft_status count(heft_file *f, uint64_t *len, uint64_t most, heft_error *err)
{
    uint8_t drop[4096];
    unpacker u = { .f = f };
    size_t n = 1;
    heft_status st = begin(&u, err);
    while (!st && n && u.made <= most) {
        n = sizeof drop;
        st = unpack_some(&u, drop, &n, err);
    }
    *len = u.made;
    end(&u);
    return st;
}

static heft_status next_content(void *ctx, uint8_t *buf, size_t len, heft_error *err)
{
    unpacker *u = ctx;
    size_t n = len;
    heft_status st = unpack_some(u, buf, &n, err);
    u->crc = heft_crc32(u->crc, buf, n);
    return st || n == len ? st
                          : heft_error_plain(err, HEFT_E_FORMAT,
                                             "gzip: it unpacks to fewer bytes than its end says");
}

static heft_status check_end(unpacker *u, heft_error *err)
{
    uint8_t more;
    size_t n = 1;
    heft_status st = unpack_some(u, &more, &n, err);
    u->has_more = n;
    if (st || n)
        return st;
    return u->crc == u->f->gzip.crc
               ? HEFT_OK
               : heft_error_plain(err, HEFT_E_CHECKSUM,
                                  "gzip: the CRC-32 at its end is not that of its content");
}

/* ---- what was decoded, as a source ---- */

typedef struct unpacked {
    heft_source base;
    heft_spill room;
} unpacked;

static const void *lend_room(heft_source *s, uint64_t offset, uint64_t len)
{
    (void)len;
    return ((const unpacked *)(const void *)s)->room.bytes + offset;
}

static heft_status room_state(heft_source *s, heft_error *err)
{
    return heft_spill_state(&((const unpacked *)(const void *)s)->room, err);
}

static heft_status read_room(heft_source *s, uint64_t offset, void *buf, size_t len,
                             heft_error *err)
{
    memcpy(buf, lend_room(s, offset, len), len);
    return room_state(s, err);
}

static void close_room(heft_source *s)
{
    unpacked *p = (unpacked *)(void *)s;
    const heft_allocator *al = p->room.host->allocator;
    heft_spill_close(&p->room);
    heft_free(al, p, sizeof *p, 16);
}

static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                     .read = read_room,
                                     .map = lend_room,
                                     .state = room_state,
                                     .close = close_room };

/* The content, of so many bytes; *has_more: it has more than that. */
static heft_status fill(unpacked *p, heft_file *f, uint64_t len, bool *has_more, heft_error *err)
{
    unpacker u = { .f = f };
    heft_status st = begin(&u, err);
    p->room = (heft_spill){ .host = f->host };
    if (!st)
        st = heft_spill_fill(&p->room, f->host, NULL, len, next_content, &u, err);
    if (!st)
        st = check_end(&u, err);
    end(&u);
    *has_more = u.has_more;
    if (st || u.has_more)
        heft_spill_close(&p->room);
    return st;
}

/* The length at the end counts modulo 2^32: what is deflated is hardly longer than its content. */
static heft_status fill_all(unpacked *p, heft_file *f, heft_error *err)
{
    uint64_t stored = f->gzip.where.length, len = f->gzip.content;
    uint64_t most = stored > UINT64_MAX / TIMES ? UINT64_MAX : stored * TIMES;
    bool has_more = false;
    heft_status st = HEFT_OK;
    most = most < ANY ? (uint64_t)ANY : most;
    bool is_plausible = len && heft_div(len, USUAL) <= stored && len + (len >> 8) + PIECE >= stored;
    if (is_plausible)
        st = fill(p, f, len, &has_more, err);
    if (st || (is_plausible && !has_more))
        return st;
    st = len > most ? HEFT_OK : count(f, &len, most, err); /* the content is at least len bytes */
    if (!st && len > most)
        return heft_error_plain(err, HEFT_E_LIMIT,
                                "gzip: its %U bytes unpack to more than %U times as many", stored,
                                (uint64_t)TIMES);
    if (!st && (!len || (uint32_t)len != f->gzip.content))
        return heft_error_plain(err, HEFT_E_FORMAT,
                                "gzip: it unpacks to %U bytes, which its end does not say", len);
    return st ? st : fill(p, f, len, &has_more, err);
}

heft_status heft_gunzip(heft_file *f, heft_error *err)
{
    const heft_allocator *al = f->host->allocator;
    unpacked *p = heft_alloc(al, sizeof *p, 16);
    if (!p)
        return heft_error_no_memory(err, "to unpack gzip");
    heft_status st = fill_all(p, f, err);
    if (st) {
        heft_free(al, p, sizeof *p, 16);
        return st;
    }
    p->base = (heft_source){ &ops, p->room.len };
    heft_source_close(f->source);
    f->source = &p->base;
    heft_input_free(&f->input);
    heft_input_init(&f->input, &f->x.mem, p->room.len, f->x.limits.index_bytes);
    f->input.host = f->host;
    f->input.in.decode = heft_input_decode;
    f->input.whole = p->room.bytes;
    f->x.file_bytes = p->room.len;
    f->gzip.is_packed = false;
    f->gzip.was_packed = true;
    return HEFT_OK;
}
