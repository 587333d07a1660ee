/* opened_container.c - opens an HDF5 file, or one in an archive, through the host.
 *
 * The host's library reads the bytes from the file's source, and decodes arrays that are not stored
 * row by row. */
#include "core/read/opened_container.h"

#include "base/crc.h"
#include "core/read/decode.h"
#include "core/read/strided.h"

enum { ALIGN = 16 };

struct heft_opened_container {
    heft_source base;   /* first member: bytes that do not lie in the file as they are */
    heft_source stored; /* the bytes of the container in the file */
    const heft_file *f;
    uint64_t offset;
    heft_source content; /* deflated containers: the bytes of `spill` */
    heft_spill spill;
    heft_container *c;
    const heft_allocator *al;
};

/* ---- the bytes in the file ---- */

static const heft_opened_container *of_stored(const heft_source *s)
{
    return (const heft_opened_container *)(const void *)((const char *)s -
                                                         offsetof(heft_opened_container, stored));
}

static heft_status read_stored(heft_source *s, uint64_t at, void *buf, size_t len, heft_error *err)
{
    const heft_opened_container *o = of_stored(s);
    return heft_file_read_stored(o->f, o->offset + at, buf, len, err);
}

static const void *map_stored(heft_source *s, uint64_t at, uint64_t len)
{
    const heft_opened_container *o = of_stored(s);
    return heft_file_map(o->f, o->offset + at, len);
}

static void release_content(heft_source *s)
{
    (void)s;
}

static const heft_source_ops stored_ops = { .size = sizeof(heft_source_ops),
                                            .read = read_stored,
                                            .map = map_stored,
                                            .close = release_content };

/* ---- the content of a deflated container ---- */

typedef struct unpacking {
    const heft_file *f;
    const heft_codec *codec;
    void *state;
    heft_range left; /* stored bytes that were not read */
    const uint8_t *in;
    size_t in_len;
    uint32_t crc;
    uint8_t buf[4 << 10];
} unpacking;

static heft_status truncated(const unpacking *u, heft_error *err)
{
    return heft_error_set(err, HEFT_E_FORMAT, u->left.offset,
                          "the compressed weights are corrupt or truncated");
}

static heft_status unpack(void *ctx, uint8_t *to, size_t len, heft_error *err)
{
    unpacking *u = ctx;
    bool is_whole = false;
    for (size_t done = 0; done < len;) {
        size_t n = u->left.length < sizeof u->buf ? (size_t)u->left.length : sizeof u->buf;
        if (!u->in_len && n) {
            HEFT_TRY(heft_file_read_stored(u->f, u->left.offset, u->buf, n, err));
            u->in = u->buf;
            u->in_len = n;
            u->left.offset += n;
            u->left.length -= n;
        }
        size_t consumed = u->in_len, produced = len - done;
        HEFT_TRY(
            u->codec->decode(u->state, u->in, &consumed, to + done, &produced, &is_whole, err));
        if (!consumed && !produced)
            return truncated(u, err);
        HEFT_TRY(heft_file_count_read(u->f, HEFT_NONE, consumed + produced, err));
        u->crc = heft_crc32(u->crc, to + done, produced);
        u->in += consumed;
        u->in_len -= consumed;
        done += produced;
    }
    return HEFT_OK;
}

static heft_status fill(heft_opened_container *o, const heft_file *f,
                        const heft_packed_range *where, heft_error *err)
{
    enum { MOST_PER_BYTE = 1032 }; /* limit of DEFLATE */
    unpacking u = { .f = f,
                    .codec = heft_host_codec(f->host, HEFT_DEFLATE),
                    .left = where->stored };
    if (!u.codec)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "this build cannot unpack the weights in the archive: unpack it "
                                "first");
    if (heft_div(where->content, MOST_PER_BYTE) > where->stored.length)
        return truncated(&u, err);
    HEFT_TRY(u.codec->open(&u.state, where->content, err));
    heft_status st = heft_spill_fill(&o->spill, f->host, NULL, where->content, unpack, &u, err);
    u.codec->close(u.state);
    if (!st && u.crc != where->crc)
        st = heft_error_set(err, HEFT_E_CHECKSUM, where->stored.offset,
                            "the CRC-32 of the archive does not match the weights in it");
    return st;
}

static heft_status read_content(heft_source *s, uint64_t at, void *buf, size_t len, heft_error *err)
{
    const heft_opened_container *o =
        (const heft_opened_container *)(const void *)((const char *)s -
                                                      offsetof(heft_opened_container, content));
    memcpy(buf, o->spill.bytes + at, len);
    return heft_spill_state(&o->spill, err);
}

static const heft_source_ops content_ops = { .size = sizeof(heft_source_ops),
                                             .read = read_content,
                                             .close = release_content };

/* ---- the bytes that do not lie in the file ---- */

static heft_status read_apart(heft_source *s, uint64_t at, void *buf, size_t len, heft_error *err)
{
    heft_opened_container *o = (heft_opened_container *)(void *)s;
    uint64_t before = o->content.size;
    size_t n = at >= before ? 0 : len < before - at ? len : (size_t)(before - at);
    if (n)
        HEFT_TRY(read_content(&o->content, at, buf, n, err));
    heft_source *decoded = o->c->decoded;
    return n == len ? HEFT_OK
                    : decoded->ops->read(decoded, at + n - before, (char *)buf + n, len - n, err);
}

static const heft_source_ops apart_ops = { .size = sizeof(heft_source_ops),
                                           .read = read_apart,
                                           .close = release_content };

heft_source *heft_opened_container_source(heft_opened_container *o)
{
    return o->base.size ? &o->base : NULL;
}

/* ---- opening ---- */

static void close_container(heft_opened_container *o)
{
    if (o->c)
        o->c->close(o->c);
    heft_spill_close(&o->spill);
    heft_free(o->al, o, sizeof *o, ALIGN);
}

static heft_status open_container(heft_opened_container *o, heft_file *f,
                                  const heft_packed_range *where, heft_error *err)
{
    heft_source *bytes = &o->stored;
    o->stored = (heft_source){ &stored_ops, where->stored.length };
    o->f = f;
    o->offset = where->stored.offset;
    if (where->is_deflated) {
        HEFT_TRY(fill(o, f, where, err));
        o->content = (heft_source){ &content_ops, where->content };
        bytes = &o->content;
    }
    uint64_t used = f->x.mem.used, limit = f->x.limits.memory;
    HEFT_TRY(f->host->open_hdf5(&o->c, bytes, used < limit ? limit - used : 1, err));
    o->base = (heft_source){ &apart_ops,
                             o->content.size + (o->c->decoded ? o->c->decoded->size : 0) };
    return HEFT_OK;
}

static heft_status refuse(const heft_file *f, heft_error *err)
{
    const char *text = f->source
                           ? "the weights are in HDF5, which this build of Heft cannot read: it "
                             "was made without libhdf5; save them as .npz or safetensors in "
                             "Keras or h5py"
                           : "the weights are in HDF5, which is read from files and not from "
                             "bytes that are fed; save them as .npz or safetensors in Keras";
    return heft_error_rule(err, heft_error_plain(err, HEFT_E_UNSUPPORTED, "%s", text),
                           "keras/library");
}

heft_status heft_file_container(heft_window *in, const heft_container **out,
                                const heft_packed_range *where)
{
    heft_file *f = (heft_file *)(void *)((char *)in - offsetof(heft_file, input));
    *out = NULL;
    if (!f->container) {
        if (!f->source || !HEFT_HAS(f->host, open_hdf5))
            return refuse(f, in->err);
        heft_opened_container *o = heft_alloc(f->host->allocator, sizeof *o, ALIGN);
        if (!o)
            return heft_error_no_memory(in->err, "for an HDF5 file");
        *o = (heft_opened_container){ .al = f->host->allocator };
        heft_status st = open_container(o, f, where, in->err);
        if (st) {
            close_container(o);
            return st;
        }
        f->container = o;
        f->close_container = close_container;
    }
    *out = f->container->c;
    return HEFT_OK;
}
