/* box_decode.c - decodes a box that is stored as a stream of zstd: frames, one after the other.
 *
 * The length of the content is not stated.  It is that of a file with the elements of the box, so
 * that space for the elements and a header is reserved, and more content is refused. */
#include "core/shards/box_decode.h"

#include "base/checked_math.h"
#include "base/error.h"

enum { BUFFER = 64 << 10, HEADER = 64 << 10 };

typedef struct box_decoder {
    const heft_file *f;
    const heft_codec *codec;
    void *state;
    uint8_t *buf; /* BUFFER bytes of input */
    const uint8_t *in;
    size_t in_len;
    uint64_t at, left; /* stored bytes that have not been read: global offset, and number */
    uint64_t content;  /* bytes that have been decoded */
    bool is_whole;     /* the input so far ends with a frame */
} box_decoder;

static heft_status refill(box_decoder *d, heft_error *err)
{
    size_t n = d->left < BUFFER ? (size_t)d->left : BUFFER;
    if (d->in_len || !n)
        return HEFT_OK;
    HEFT_TRY(heft_file_read_stored(d->f, d->at, d->buf, n, err));
    d->in = d->buf;
    d->in_len = n;
    d->at += n;
    d->left -= n;
    return HEFT_OK;
}

/* Decode up to *len bytes; fewer only at the end. */
static heft_status decode(box_decoder *d, uint8_t *out, size_t *len, heft_error *err)
{
    size_t want = *len;
    *len = 0;
    while (*len < want) {
        HEFT_TRY(refill(d, err));
        if (!d->in_len && d->is_whole)
            break;
        size_t consumed = d->in_len, n = want - *len;
        HEFT_TRY(d->codec->decode(d->state, d->in, &consumed, out + *len, &n, &d->is_whole, err));
        if (!consumed && !n)
            return heft_error_plain(err, HEFT_E_FORMAT, "its zstd data are truncated");
        d->in += consumed;
        d->in_len -= consumed;
        *len += n;
    }
    d->content += *len;
    return HEFT_OK;
}

/* Decode, and fill the rest of the space with zeros. */
static heft_status read_content(void *ctx, uint8_t *buf, size_t len, heft_error *err)
{
    size_t n = len;
    HEFT_TRY(decode(ctx, buf, &n, err));
    memset(buf + n, 0, len - n);
    return HEFT_OK;
}

static heft_status check_end(box_decoder *d, heft_error *err)
{
    uint8_t more;
    size_t n = 1;
    HEFT_TRY(decode(d, &more, &n, err));
    return n ? heft_error_plain(err, HEFT_E_FORMAT,
                                "its zstd data have more content than a file with its elements")
             : HEFT_OK;
}

/* ---- the content as a source ---- */

static heft_status read_decoded(heft_source *s, uint64_t offset, void *buf, size_t len,
                                heft_error *err)
{
    const heft_decoded_box *d = (const heft_decoded_box *)s;
    memcpy(buf, d->spill.bytes + offset, len);
    return heft_spill_state(&d->spill, err);
}

static void release(heft_source *s)
{
    (void)s;
}

static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                     .read = read_decoded,
                                     .close = release };

/* ---- opening ---- */

/* Return the bytes to reserve; 0: they do not fit. */
static uint64_t space_of(const heft_file *f, uint32_t row, uint32_t box)
{
    heft_boxes b = heft_ix_boxes(&f->x, row);
    const heft_ix_assembled *a = (const heft_ix_assembled *)f->x.assembled.ptr + row;
    uint64_t elements, bytes, space;
    bool fits = heft_product(&elements, heft_box_sizes(&b, box), b.rank) &&
                heft_mul(&bytes, elements, heft_dtype_size(heft_ix_row(&f->x, a->tensor)->dtype)) &&
                heft_add(&space, bytes, HEADER);
    return fits ? space : 0;
}

heft_status heft_decoded_box_open(heft_decoded_box *out, const heft_file *f, uint32_t row,
                                  uint32_t box, heft_error *err)
{
    const heft_allocator *al = f->host->allocator;
    const heft_ix_box *at = heft_ix_boxes(&f->x, row).rows + box;
    uint64_t space = space_of(f, row, box);
    box_decoder d = {
        .f = f, .codec = heft_host_codec(f->host, HEFT_ZSTD), .at = at->offset, .left = at->length
    };
    *out = (heft_decoded_box){ .spill = { .host = f->host } };
    if (!d.codec)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "this build cannot decode zstd");
    if (!space)
        return heft_error_plain(err, HEFT_E_LIMIT, "it has more than 2^64 bytes");
    d.buf = heft_alloc(al, BUFFER, 64);
    if (!d.buf)
        return heft_error_no_memory(err, "to decode zstd");
    heft_status st = d.codec->open(&d.state, space, err);
    if (!st)
        st = heft_spill_fill(&out->spill, f->host, NULL, space, read_content, &d, err);
    if (!st)
        st = check_end(&d, err);
    if (d.state)
        d.codec->close(d.state);
    heft_free(al, d.buf, BUFFER, 64);
    out->base = (heft_source){ &ops, d.content };
    return st;
}

void heft_decoded_box_close(heft_decoded_box *d)
{
    heft_spill_close(&d->spill);
}
