/* scan_compressed.c - bytes that are compressed as a whole: unpacked by the host's codecs, or
 * reported as unreadable. */
#include "base/cursor.h"
#include "base/error.h"
#include "base/text.h"
#include "scan/scan.h"

enum {
    BEGINNING = 64 << 10,   /* decoded bytes that show whether the rest matters … */
    ALWAYS_WHOLE = 1 << 20, /* … of more encoded bytes than this */
    MOST_DECODED = 1 << 30
};

/* ---- headers of gzip and zlib (RFC 1952, RFC 1950) ---- */

static uint64_t skip_text(const uint8_t *p, uint64_t size, uint64_t at)
{
    const uint8_t *end = at < size ? heft_str_seek(p + at, p + size, "", 1) : NULL;
    return end ? (uint64_t)(end - p) + 1 : size;
}

/* Return the length of the header of a gzip member that begins with the magic, or 0. */
static uint64_t gzip_header(const uint8_t *p, uint64_t size)
{
    enum { FIXED = 10, SUM = 2, EXTRA = 4, NAME = 8, COMMENT = 16 };
    uint64_t at = FIXED;
    if (size < FIXED + 2)
        return 0;
    if (p[3] & EXTRA)
        at += 2 + (uint64_t)heft_le16(p + FIXED);
    if (p[3] & NAME)
        at = skip_text(p, size, at);
    if (p[3] & COMMENT)
        at = skip_text(p, size, at);
    if (p[3] & SUM)
        at += 2;
    return at < size ? at : 0;
}

static uint64_t zlib_header(const uint8_t *p, uint64_t size)
{
    enum { HEADER = 2, DICTIONARY = 0x20 };
    bool is_zlib = size > HEADER && !((p[0] << 8 | p[1]) % 31) && !(p[1] & DICTIONARY);
    return is_zlib ? HEADER : 0;
}

/* ---- kinds of compression ---- */

struct heft_scan_packing {
    const char *name, *magic; /* "?" in the magic stands for any byte */
    size_t magic_bytes;
    heft_encoding encoding;                              /* HEFT_RAW: there is no codec */
    uint64_t (*header)(const uint8_t *p, uint64_t size); /* NULL: none */
    uint64_t trailer;                                    /* bytes between two members */
};

static const heft_scan_packing kinds[] = {
    { "gzip", "\x1F\x8B\x08", 3, HEFT_DEFLATE, gzip_header, 8 },
    { "zlib", "\x78", 1, HEFT_DEFLATE, zlib_header, 4 },
    { "zstd", "\x28\xB5\x2F\xFD", 4, HEFT_ZSTD, NULL, 0 },
    { "bzip2", "BZh?1AY&SY", 10, HEFT_RAW, NULL, 0 },
    { "xz", "\xFD\x37zXZ\0", 6, HEFT_RAW, NULL, 0 },
    { "lzma", "\x5D\0\0??\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 13, HEFT_RAW, NULL, 0 },
    { "7z", "7z\xBC\xAF\x27\x1C", 6, HEFT_RAW, NULL, 0 },
    { "lz4", "\x04\x22\x4D\x18", 4, HEFT_RAW, NULL, 0 },
    { "rar", "Rar!\x1A\x07", 6, HEFT_RAW, NULL, 0 },
};

const heft_scan_packing heft_scan_deflate = { .name = "deflate", .encoding = HEFT_DEFLATE };

static void report_packing(heft_scan *s, const heft_scan_piece *p, const heft_scan_packing *k)
{
    heft_error text;
    heft_error_plain(&text, HEFT_E_UNSUPPORTED,
                     "is compressed with %s, which cannot be searched here: unpack it first",
                     k->name);
    heft_scan_unreadable(s, p, text.message);
}

static bool has_magic(const heft_scan_packing *k, const uint8_t *p, uint64_t size)
{
    if (size < k->magic_bytes)
        return false;
    for (size_t i = 0; i < k->magic_bytes; i++)
        if (k->magic[i] != '?' && (uint8_t)k->magic[i] != p[i])
            return false;
    return !k->header || k->header(p, size);
}

static const heft_scan_packing *kind_of(const uint8_t *p, uint64_t size)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (has_magic(kinds + i, p, size))
            return kinds + i;
    return NULL;
}

/* ---- unpacking ---- */

/* Decode the members one after the other, at most `most` bytes. */
static heft_status decode_members(heft_scan_decoded *d, heft_scan *s, const heft_scan_packing *k,
                                  const heft_scan_piece *p, uint64_t most)
{
    heft_status st = HEFT_OK;
    uint64_t at = 0;
    do {
        const uint8_t *from = p->bytes + at;
        at += k->header ? k->header(from, p->size - at) : 0;
        d->consumed = 0;
        st = heft_scan_decode(d, s, k->encoding, p->bytes + at, p->size - at, most);
        at += d->consumed;
        at = p->size - at > k->trailer ? at + k->trailer : p->size;
    } while (!st && !d->is_cut && !d->is_damaged && !d->has_no_decoder && d->consumed &&
             at < p->size && has_magic(k, p->bytes + at, p->size - at));
    return st;
}

/* Leave work and memory to go through the decoded bytes. */
static uint64_t most_decoded(const heft_scan *s)
{
    uint64_t memory = s->mem.limit - s->mem.used;
    uint64_t most = (memory < s->work ? memory : s->work) / 2;
    return most < MOST_DECODED ? most : MOST_DECODED;
}

/* Decode everything, or only the beginning of bytes that are no pickle and no archive. */
static heft_status decode(heft_scan_decoded *d, heft_scan *s, const heft_scan_packing *k,
                          const heft_scan_piece *p)
{
    bool is_whole = heft_scan_is_pickle_name(p->name) || p->size <= ALWAYS_WHOLE;
    heft_status st = decode_members(d, s, k, p, BEGINNING);
    if (st || !d->is_cut)
        return st;
    d->is_cut = is_whole || heft_scan_wants_all(d->bytes, d->size);
    if (!d->is_cut)
        return HEFT_OK;
    heft_scan_free(s, d);
    return decode_members(d, s, k, p, most_decoded(s));
}

static void report(heft_scan *s, const heft_scan_piece *p, const heft_scan_decoded *d)
{
    const heft_scan_packing *k = p->packing;
    if (d->has_no_decoder)
        report_packing(s, p, k);
    if (d->is_cut)
        heft_scan_unreadable(s, p, "unpacks to too many bytes: the rest was not searched");
    /* Any bytes may begin like zlib. */
    if (d->is_damaged && k->header != zlib_header)
        heft_scan_unreadable(s, p, "is compressed, and damaged: the rest was not searched");
}

heft_status heft_scan_unpack(heft_scan_decoded *d, heft_scan *s, heft_scan_piece *p)
{
    heft_status st = decode(d, s, p->packing, p);
    if (!st)
        report(s, p, d);
    if (!heft_scan_charge(s, p, d->size))
        d->size = 0;
    p->bytes = d->bytes;
    p->size = d->size;
    p->at = 0;
    p->is_decoded = true;
    p->packing = NULL;
    return st;
}

/* Programs name compressed files after the content: "model.pkl.gz". */
static heft_str without_suffix(heft_str name)
{
    for (size_t i = name.len; i--;)
        if (name.ptr[i] == '.')
            return (heft_str){ name.ptr, i };
    return name;
}

heft_status heft_scan_compressed(heft_scan *s, const heft_scan_piece *p, bool *found)
{
    heft_scan_piece content = *p;
    content.packing = kind_of(p->bytes, p->size);
    *found = content.packing;
    if (!*found)
        return HEFT_OK;
    content.depth++;
    if (!heft_scan_is_pickle_name(p->name))
        content.name = without_suffix(p->name);
    return heft_scan_add(s, &content);
}
