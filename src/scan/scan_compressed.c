/* scan_compressed.c - bytes that are compressed as a whole: unpacked by the host's codecs, or
 * reported as unreadable. */
#include "base/checked_math.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/text.h"
#include "core/read/file.h"
#include "grammar/tar_members.h"
#include "grammar/zip.h"
#include "scan/scan.h"

/* ---- decodes compressed bytes of unknown length ---- */

enum { FIRST = 64 << 10, STEP = 1 << 20 };

static heft_status grow(heft_scan_decoded *d, heft_scan *s, uint64_t most)
{
    if (d->size < d->capacity)
        return HEFT_OK;
    uint64_t capacity = d->capacity ? d->capacity * 2 : FIRST;
    capacity = capacity < most ? capacity : most;
    void *bytes = capacity < SIZE_MAX
                      ? heft_mem_resize(&s->mem, d->bytes, (size_t)d->capacity, (size_t)capacity)
                      : NULL;
    if (!bytes)
        return heft_error_no_memory(s->err, "to unpack compressed data");
    d->bytes = bytes;
    d->capacity = capacity;
    return HEFT_OK;
}

/* Keep decoded bytes, except those to be dropped. */
static void keep_decoded(heft_scan_decoded *d, size_t produced)
{
    size_t n = produced < d->to_drop ? produced : (size_t)d->to_drop;
    uint8_t *to = d->bytes + d->size;
    if (n)
        memmove(to, to + n, produced - n);
    d->to_drop -= n;
    d->dropped += n;
    d->size += produced - n;
}

static uint64_t decoded(const heft_scan_decoded *d)
{
    return d->dropped + d->size;
}

typedef struct decoding {
    heft_scan *s;
    heft_scan_decoded *out;
    const heft_codec *codec;
    void *state;
    const uint8_t *encoded;
    uint64_t left;
    bool has_ended;
} decoding;

/* Decode at most `most` bytes; damage ends the decoding. */
static heft_status decode_some(decoding *x, uint64_t most)
{
    heft_error ignored;
    heft_scan_decoded *d = x->out;
    size_t consumed = x->left < SIZE_MAX ? (size_t)x->left : SIZE_MAX;
    size_t produced = (size_t)(d->capacity - d->size < most ? d->capacity - d->size : most);
    bool whole = false;
    heft_status st = x->codec->decode(x->state, x->encoded, &consumed, d->bytes + d->size,
                                      &produced, &whole, &ignored);
    if (st == HEFT_E_NOMEM)
        return heft_error_no_memory(x->s->err, "to unpack compressed data");
    d->is_damaged = st;
    d->is_truncated = !st && !whole && !consumed && !produced;
    x->has_ended = st || whole || d->is_truncated;
    if (st)
        return HEFT_OK;
    keep_decoded(d, produced);
    d->consumed += consumed;
    x->encoded += consumed;
    x->left -= consumed;
    return HEFT_OK;
}

/* Decode at most `most` bytes in all; those after the first `steps` one at a time. */
static heft_status decode_from_start(decoding *x, uint64_t most, uint64_t steps)
{
    heft_status st = x->codec->open(&x->state, HEFT_UNKNOWN_LENGTH, x->s->err);
    while (!st && !x->has_ended && x->out->size < most) {
        uint64_t left = decoded(x->out) < steps ? steps - decoded(x->out) : 1;
        st = grow(x->out, x->s, most);
        if (!st)
            st = decode_some(x, left < STEP ? left : STEP);
    }
    x->out->is_cut = !x->has_ended;
    if (x->state)
        x->codec->close(x->state);
    x->state = NULL;
    return st;
}

/* Decode at most `most` bytes, appended to out.  Damage ends the decoded bytes and is no error; the
 * bytes before the damage count. */
static heft_status scan_decode(heft_scan_decoded *out, heft_scan *s, heft_encoding e,
                               const uint8_t *encoded, uint64_t size, uint64_t most)
{
    decoding x = { .s = s, .out = out, .encoded = encoded, .left = size };
    uint64_t size_before = out->size, to_drop = out->to_drop, dropped = out->dropped;
    x.codec = heft_host_codec(s->host, e);
    out->has_no_decoder = !x.codec;
    if (!x.codec)
        return HEFT_OK;
    heft_status st = decode_from_start(&x, most, UINT64_MAX);
    if (st || !out->is_damaged)
        return st;

    /* The last step has lost the bytes before the damage, which a program would have seen. */
    decoding again = { .s = s, .out = out, .codec = x.codec, .encoded = encoded, .left = size };
    uint64_t steps = decoded(out),
             end = out->size < UINT64_MAX - STEP ? out->size + STEP : UINT64_MAX;
    out->size = size_before;
    out->to_drop = to_drop;
    out->dropped = dropped;
    out->consumed = 0;
    st = decode_from_start(&again, end < most ? end : most, steps);
    out->is_damaged = true;
    out->is_cut = false;
    return st;
}

enum {
    BEGINNING = 64 << 10,   /* decoded bytes that show whether the rest matters … */
    ALWAYS_WHOLE = 1 << 20, /* … of more encoded bytes than this */
    MOST_DECODED = 1 << 30,
    DROPPED_RATIO = 16 /* bytes that are only unpacked, for a byte of work */
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
    bool is_deflate = size > HEADER && (p[0] & 0xF) == 8 && p[0] >> 4 < 8;
    return is_deflate && !((p[0] << 8 | p[1]) % 31) && !(p[1] & DICTIONARY) ? HEADER : 0;
}

/* Files of joblib before 0.9.3: "ZF", the length as text, perhaps one more blank, and zlib. */
static uint64_t joblib_header(const uint8_t *p, uint64_t size)
{
    enum { FIXED = 21 };
    uint64_t at = size > FIXED && p[FIXED] == ' ' ? FIXED + 1 : FIXED;
    uint64_t more = size > at ? zlib_header(p + at, size - at) : 0;
    return more ? at + more : 0;
}

/* ---- the header of LZMA, which has no magic ---- */

typedef struct range_decoder {
    const uint8_t *p, *end;
    uint32_t range, code;
} range_decoder;

/* Decode a bit whose probability has not been adapted. */
static uint32_t first_bit(range_decoder *d)
{
    if (d->range < (uint32_t)1 << 24) {
        d->range <<= 8;
        d->code = d->code << 8 | (d->p < d->end ? *d->p++ : 0);
    }
    uint32_t bound = (d->range >> 11) << 10;
    bool is_set = d->code >= bound;
    d->code -= is_set ? bound : 0;
    d->range = is_set ? d->range - bound : bound;
    return is_set;
}

/* Encoders write 2^n or 2^n + 2^(n-1), and some decoders accept nothing else. */
static bool is_usual_dictionary(uint32_t size)
{
    uint32_t low = size & (~size + 1);
    return size == low || size == low * 3 || size == UINT32_MAX;
}

/* Return true for opcodes that Python runs on an empty stack. */
static bool may_begin_pickle(uint8_t c)
{
    static const char opcodes[] = "()]}NcBCFGIJKLMSTUVX";
    return c >= 0x80 ? c <= 0x98
                     : c && heft_str_seek((const uint8_t *)opcodes,
                                          (const uint8_t *)opcodes + sizeof opcodes - 1, &c, 1);
}

/* 13 bytes: lc, lp and pb; u32 size of the dictionary; u64 size of the content or all ones.  The
 * coded bytes begin with 0, and with a literal: its value tells LZMA from small numbers.  A size
 * that no content has does not stop Python, and is believed with the properties that all encoders
 * write: numbers look like others. */
static bool begins_lzma(const uint8_t *p, uint64_t size)
{
    enum { HEADER = 13, CODE = HEADER + 1, SMALLEST = CODE + 4, PROPERTIES = 225, COMMON = 0x5D };
    if (size < SMALLEST || p[0] >= PROPERTIES || p[0] % 9 + p[0] / 9 % 5 > 4 || p[HEADER])
        return false;
    uint64_t content = heft_le64(p + 5);
    bool is_usual = is_usual_dictionary(heft_le32(p + 1)),
         is_huge = content != UINT64_MAX && content >> 38;
    if (!content || (is_huge && p[0] != COMMON))
        return false;
    range_decoder d = { .p = p + SMALLEST, .end = p + size, .range = UINT32_MAX };
    for (size_t i = CODE; i < SMALLEST; i++)
        d.code = d.code << 8 | p[i];
    uint32_t literal = first_bit(&d) ? 0 : 1;
    for (int i = 0; i < 8 && literal; i++)
        literal = literal << 1 | first_bit(&d);
    uint8_t first = (uint8_t)literal;
    return is_usual && !is_huge ? first : may_begin_pickle(first);
}

static bool begins_skipped(const uint8_t *p, uint64_t size)
{
    return size && p[0] >> 4 == 5;
}

static bool begins_old_zstd(const uint8_t *p, uint64_t size)
{
    return size && p[0] >= 0x22 && p[0] < 0x28;
}

/* ---- kinds of compression ---- */

struct heft_scan_packing {
    const char *name, *magic; /* "?" in the magic stands for any byte */
    size_t magic_bytes;
    heft_encoding encoding;                              /* HEFT_RAW: there is no codec */
    uint64_t (*header)(const uint8_t *p, uint64_t size); /* NULL: none */
    uint64_t trailer;                                    /* bytes between two members */
    bool (*begins)(const uint8_t *p, uint64_t size);     /* beyond the magic; may be NULL */
};

/* The frames of zstd before and after its first stable version, and frames that are skipped, have
 * one decoder. */
static const heft_scan_packing kinds[] = {
    { "gzip", "\x1F\x8B\x08", 3, HEFT_DEFLATE, gzip_header, 8, NULL },
    { "zlib", "", 0, HEFT_DEFLATE, zlib_header, 4, NULL },
    { "zlib", "ZF", 2, HEFT_DEFLATE, joblib_header, 4, NULL },
    { "zstd", "\x28\xB5\x2F\xFD", 4, HEFT_ZSTD, NULL, 0, NULL },
    { "zstd", "?\x2A\x4D\x18", 4, HEFT_ZSTD, NULL, 0, begins_skipped },
    { "zstd", "?\xB5\x2F\xFD", 4, HEFT_ZSTD, NULL, 0, begins_old_zstd },
    { "bzip2", "BZh?1AY&SY", 10, HEFT_RAW, NULL, 0, NULL },
    { "bzip2", "BZh?\x17\x72\x45\x38\x50\x90", 10, HEFT_RAW, NULL, 0, NULL },
    { "xz", "\xFD\x37zXZ\0", 6, HEFT_RAW, NULL, 0, NULL },
    { "lzma", "", 0, HEFT_RAW, NULL, 0, begins_lzma },
    { "lzma", "\x5D\0\0??\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 13, HEFT_RAW, NULL, 0, NULL },
    { "lzip", "LZIP", 4, HEFT_RAW, NULL, 0, NULL },
    { "7z", "7z\xBC\xAF\x27\x1C", 6, HEFT_RAW, NULL, 0, NULL },
    { "lz4", "\x04\x22\x4D\x18", 4, HEFT_RAW, NULL, 0, NULL },
    { "lz4", "\x02\x21\x4C\x18", 4, HEFT_RAW, NULL, 0, NULL },
    { "rar", "Rar!\x1A\x07", 6, HEFT_RAW, NULL, 0, NULL },
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
    return (!k->header || k->header(p, size)) && (!k->begins || k->begins(p, size));
}

static const heft_scan_packing *kind_of(const uint8_t *p, uint64_t size)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (has_magic(kinds + i, p, size))
            return kinds + i;
    return NULL;
}

/* ---- unpacking ---- */

/* Find the member after one that ends at *at: behind the checksum and, in gzip, behind zeros.
 * Return NULL if none follows. */
static const heft_scan_packing *next_member(const heft_scan_packing *k, const heft_scan_piece *p,
                                            uint64_t *at)
{
    *at = p->size - *at > k->trailer ? *at + k->trailer : p->size;
    while (k->header == gzip_header && *at < p->size && !p->bytes[*at])
        ++*at;
    return kind_of(p->bytes + *at, p->size - *at);
}

/* Decode the members one after the other, at most `most` bytes. */
static heft_status decode_members(heft_scan_decoded *d, heft_scan *s, const heft_scan_packing *k,
                                  const heft_scan_piece *p, uint64_t most)
{
    heft_status st = HEFT_OK;
    heft_encoding encoding = k->encoding;
    uint64_t at = 0;
    while (!st && k && k->encoding == encoding) {
        const uint8_t *from = p->bytes + at;
        at += k->header ? k->header(from, p->size - at) : 0;
        d->consumed = 0;
        st = scan_decode(d, s, encoding, p->bytes + at, p->size - at, most);
        at += d->consumed;
        d->taken = at;
        bool has_ended = d->is_cut || d->is_damaged || d->is_truncated || d->has_no_decoder ||
                         !d->consumed || k == &heft_scan_deflate;
        k = has_ended ? NULL : next_member(k, p, &at);
    }
    d->is_followed = !st && k;
    return st;
}

/* Leave work and memory to go through the decoded bytes; the encoded bytes are work, too. */
static uint64_t most_decoded(const heft_scan *s)
{
    uint64_t memory = (s->mem.limit - s->mem.used) / 2, work = heft_div(s->work, 3);
    uint64_t most = memory < work ? memory : work;
    return most < MOST_DECODED ? most : MOST_DECODED;
}

heft_status heft_scan_wants_all(bool *wants, heft_scan *s, const uint8_t *head, uint64_t size)
{
    uint64_t data = heft_scan_npy_data(head, size);
    *wants = true;
    if (heft_tar_begins(head, size) || heft_zip_begins(head, size) || kind_of(head, size) || data ||
        heft_scan_is_hdf5(head, size))
        return HEFT_OK;
    return heft_scan_is_pickle_cut(wants, s, head, size);
}

/* Decode what follows an array of numbers, which no loader takes for a pickle.  A deflated byte
 * unpacks to 1032 bytes at most, so that there is work enough for every array. */
static heft_status decode_after_array(heft_scan_decoded *d, heft_scan *s,
                                      const heft_scan_packing *k, const heft_scan_piece *p,
                                      uint64_t end)
{
    uint64_t most = s->work < UINT64_MAX / DROPPED_RATIO ? s->work * DROPPED_RATIO : UINT64_MAX;
    heft_scan_free(s, d);
    d->to_drop = end < most ? end : most;
    heft_status st = decode_members(d, s, k, p, most_decoded(s));
    d->is_cut |= !d->to_drop && end > most;
    return st;
}

/* Decode everything, or only the beginning of bytes that are no pickle and no archive. */
static heft_status decode(heft_scan_decoded *d, heft_scan *s, const heft_scan_packing *k,
                          const heft_scan_piece *p)
{
    uint64_t end;
    bool is_whole = heft_scan_is_pickle_name(p->name) || p->size <= ALWAYS_WHOLE ||
                    heft_scan_is_json_name(p->name) ||
                    (p->is_in_torchscript && heft_scan_is_script_name(p->name));
    heft_status st = decode_members(d, s, k, p, BEGINNING);
    if (st || !d->is_cut)
        return st;
    if (heft_scan_npy_end(&end, d->bytes, d->size) && end && end >= d->size)
        return decode_after_array(d, s, k, p, end);
    if (!is_whole)
        st = heft_scan_wants_all(&is_whole, s, d->bytes, d->size);
    d->is_cut = is_whole;
    if (st || !is_whole)
        return st;
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
    if (k->header == zlib_header) /* any bytes may begin like zlib */
        return;
    if (d->is_damaged || d->is_truncated)
        heft_scan_unreadable(s, p, "is compressed, and damaged: the rest was not searched");
    if (d->is_followed)
        heft_scan_unreadable(s, p, "goes on in another compression: the rest was not searched");
}

heft_status heft_scan_unpack(heft_scan_decoded *d, heft_scan *s, heft_scan_piece *p)
{
    heft_status st = decode(d, s, p->packing, p);
    if (!st)
        report(s, p, d);
    if (!heft_scan_charge(s, p, d->size + d->taken + d->dropped / DROPPED_RATIO))
        d->size = 0;
    p->bytes = d->bytes;
    p->size = d->size;
    p->at = d->dropped;
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
