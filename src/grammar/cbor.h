/* cbor.h - a pull reader over CBOR in memory, and a writer of its shortest forms (RFC 8949).
 *
 * No tree: the caller asks for the next item and keeps what it needs.  Strings are lent; only those that
 * come in several chunks are joined in the caller's arena.  Depth is bounded, nothing recurses, and
 * what is announced is compared with the bytes that are left before anybody believes it.
 *
 * Tags are passed over: the item behind them says that it was tagged, and with what.
 */
#ifndef HEFT_CBOR_H
#define HEFT_CBOR_H
#include "base/arena.h"
#include "base/cursor.h"
#include "base/out.h"

typedef enum heft_cbor_kind {
    HEFT_CBOR_FAILED, /* status and message are set */
    HEFT_CBOR_END,    /* the item is complete; what follows it was not looked at */
    HEFT_CBOR_UINT,   /* u */
    HEFT_CBOR_NINT,   /* -1 - u */
    HEFT_CBOR_BYTES,
    HEFT_CBOR_TEXT,
    HEFT_CBOR_ARRAY, /* u: members, unless HEFT_CBOR_INDEFINITE */
    HEFT_CBOR_ARRAY_END,
    HEFT_CBOR_MAP, /* u: pairs, unless HEFT_CBOR_INDEFINITE */
    HEFT_CBOR_MAP_END,
    HEFT_CBOR_FALSE,
    HEFT_CBOR_TRUE,
    HEFT_CBOR_NULL,
    HEFT_CBOR_UNDEFINED,
    HEFT_CBOR_SIMPLE, /* u: any other simple value */
    HEFT_CBOR_FLOAT   /* u: the bits, of 2, 4 or 8 bytes in width */
} heft_cbor_kind;

typedef enum heft_cbor_context {
    HEFT_CBOR_AT_ROOT,
    HEFT_CBOR_IN_ARRAY,
    HEFT_CBOR_AS_KEY,
    HEFT_CBOR_AS_VALUE
} heft_cbor_context;

enum {                     /* heft_cbor.flags: how an item departs from deterministic encoding */
       HEFT_CBOR_LONG = 1, /* a shorter form says the same; a NaN: it is not F9 7E00 */
       HEFT_CBOR_INDEFINITE = 2, /* of indefinite length */
       HEFT_CBOR_TAGGED = 4      /* tag holds the number of the innermost tag */
};

enum { HEFT_CBOR_DEPTH = 128 }; /* a reader lies on the stack, often twice */

typedef struct
    heft_cbor_frame {      /* an open container, or what surrounds the root; places from start on */
    uint32_t left;         /* items to come; of indefinite length: an even number less those read */
    uint32_t at;           /* where it begins */
    uint32_t key, key_end; /* strict: the latest key of a map; at the same place: none yet */
    uint16_t tags;         /* that stand before it */
    bool is_map, is_open;
} heft_cbor_frame;

typedef struct heft_cbor {
    const uint8_t *p, *end, *start;
    uint64_t base;     /* file offset of start, for messages */
    heft_arena *arena; /* for strings in chunks; NULL: those are HEFT_E_UNSUPPORTED */
    heft_error *err;
    uint32_t depth, max_depth; /* open containers; the most, tags counted, that there may be */
    uint32_t level;            /* open containers and the tags before them */
    bool strict; /* deterministic encoding only: no flag, keys sorted; set it after opening */
    heft_status st;
    /* Of the item read last. */
    const uint8_t *item; /* where it begins, tags included; p is behind it, or behind its head */
    uint64_t u, tag;
    heft_str str;
    uint8_t flags, width;
    uint8_t context;                        /* heft_cbor_context */
    heft_cbor_frame frame;                  /* the innermost container */
    heft_cbor_frame outer[HEFT_CBOR_DEPTH]; /* those around it */
} heft_cbor;

/* Over less than 4 GiB of data, item by item; max_depth 1 is an array without arrays in it. */
heft_cbor heft_cbor_open(const void *data, size_t len, uint64_t base, uint32_t max_depth,
                         heft_arena *arena, heft_error *err);
heft_cbor_kind heft_cbor_next(heft_cbor *c);
/* Passes over the rest of the item whose head was k.  What is passed over is checked but takes no
 * memory. */
heft_status heft_cbor_skip(heft_cbor *c, heft_cbor_kind k);
/* The number of the item read last, which was k: an unsigned one, or a bignum that fits. */
bool heft_cbor_u64(uint64_t *out, const heft_cbor *c, heft_cbor_kind k);
/* The value of the float read last. */
double heft_cbor_f64(const heft_cbor *c);
/* Sets the error at the item read last. */
heft_status heft_cbor_fail(heft_cbor *c, const char *fmt, ...);

/* File offset of a place in the data. */
static inline uint64_t heft_cbor_offset(const heft_cbor *c, const uint8_t *p)
{
    return c->base + (uint64_t)(p - c->start);
}

/* ---- looking ahead ---- */

/* For records that are nearly always spelled alike: what is expected is looked at piece by piece, all in its
 * shortest form.  Each look says whether that is there and goes on behind it.  After one that does not,
 * the look is over: nothing was read, and heft_cbor_next() tells what is there. */
typedef struct heft_cbor_fast {
    const uint8_t *p, *end;
} heft_cbor_fast;

/* At the next items, so many of one container, which may nest so many containers. */
static inline bool heft_cbor_fast_at(heft_cbor_fast *l, const heft_cbor *c, uint32_t items,
                                     uint32_t levels)
{
    *l = (heft_cbor_fast){ c->p, c->end };
    return !c->st && c->frame.left >= items && c->max_depth - c->level >= levels;
}

/* The bytes that were looked at are these items. */
static inline void heft_cbor_accept(heft_cbor *c, const heft_cbor_fast *l, uint32_t items)
{
    c->item = c->p;
    c->p = l->p;
    c->frame.left -= items;
}

/* A text, of fewer than 24 bytes. */
static inline bool heft_cbor_fast_text(heft_cbor_fast *l, const char *text, size_t len)
{
    if ((size_t)(l->end - l->p) <= len || *l->p != (0x60 | len) || memcmp(l->p + 1, text, len) != 0)
        return false;
    l->p += 1 + len;
    return true;
}

enum { HEFT_CBOR_HEAD_TEXT = 0x60, HEFT_CBOR_HEAD_ARRAY = 0x80, HEFT_CBOR_HEAD_MAP = 0xA0 };

/* The head of a text, array or map of *n bytes, members or pairs, at most `most`, which are fewer than 24. */
static inline bool heft_cbor_fast_head(heft_cbor_fast *l, uint32_t head, uint32_t most, uint32_t *n)
{
    *n = l->p < l->end ? *l->p++ ^ head : UINT32_MAX;
    return *n <= most;
}

/* Any text of ASCII characters, fewer than 256. */
static inline bool heft_cbor_fast_string(heft_cbor_fast *l, heft_str *out)
{
    enum { SHORT = 23, LONG = 24 };
    static const uint64_t tops = UINT64_C(0x8080808080808080);
    uint32_t len;
    if (!heft_cbor_fast_head(l, HEFT_CBOR_HEAD_TEXT, LONG, &len))
        return false;
    if (len == LONG && (l->p == l->end || (len = *l->p++) <= SHORT))
        return false;
    /* eight bytes at once, of which there must be as many behind the text: more than of the last one */
    if ((size_t)(l->end - l->p) < len + sizeof(uint64_t))
        return false;
    uint64_t high = 0;
    uint32_t at = 0;
    for (; len - at >= sizeof high; at += (uint32_t)sizeof high)
        high |= heft_le64(l->p + at);
    high |= heft_le64(l->p + at) & ((UINT64_C(1) << 8 * (len - at)) - 1);
    *out = (heft_str){ (const char *)l->p, len };
    l->p += len;
    return !(high & tops);
}

/* The number behind a head of two bytes or more. */
static inline bool heft_cbor_fast_long(heft_cbor_fast *l, uint64_t *out)
{
    uint32_t info = *l->p++ ^ 24u, bytes = 1u << (info & 3);
    if (info > 3 || (size_t)(l->end - l->p) < bytes)
        return false;
    if ((size_t)(l->end - l->p) >= sizeof *out) {
        *out = heft_be64(l->p) >> (64 - 8 * bytes);
    } else {
        *out = 0;
        for (uint32_t at = 0; at < bytes; at++)
            *out = *out << 8 | l->p[at];
    }
    l->p += bytes;
    /* One byte holds what is below 2^8, eight what is not below 2^32. */
    return bytes == 1 ? *out >= 24 : *out >> 4 * bytes != 0;
}

static inline bool heft_cbor_fast_u64(heft_cbor_fast *l, uint64_t *out)
{
    if (l->p == l->end || *l->p >= 24)
        return l->p < l->end && heft_cbor_fast_long(l, out);
    *out = *l->p++;
    return true;
}

/* An array of *n numbers, at most `most`, which are fewer than 24; each becomes eight bytes, little-endian. */
static inline bool heft_cbor_fast_u64s(heft_cbor_fast *l, uint8_t *out, uint32_t most, uint32_t *n)
{
    bool fits = heft_cbor_fast_head(l, HEFT_CBOR_HEAD_ARRAY, most, n);
    for (uint32_t i = 0; fits && i < *n; i++) {
        uint64_t v;
        fits = heft_cbor_fast_u64(l, &v);
        if (fits)
            heft_put_le64(out + 8 * i, v);
    }
    return fits;
}

/* ---- writing ---- */

void heft_cbor_put_u64(heft_out *o, uint64_t v);
void heft_cbor_put_i64(heft_out *o, int64_t v);
void heft_cbor_put_text(heft_out *o, heft_str s);
void heft_cbor_put_key(heft_out *o, const char *key); /* a text */
void heft_cbor_put_bytes(heft_out *o, heft_str s);
void heft_cbor_put_array(heft_out *o, uint64_t members);
void heft_cbor_put_map(heft_out *o, uint64_t pairs);
void heft_cbor_put_bool(heft_out *o, bool v);
void heft_cbor_put_null(heft_out *o);
/* In the fewest of 2, 4 and 8 bytes that hold it bit for bit. */
void heft_cbor_put_f64(heft_out *o, double v);

#endif
