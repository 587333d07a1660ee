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
    HEFT_CBOR_END,  /* the item is complete; what follows it was not looked at */
    HEFT_CBOR_UINT, /* u */
    HEFT_CBOR_NINT, /* -1 - u */
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
    HEFT_CBOR_FLOAT,  /* u: the bits, of 2, 4 or 8 bytes in width */
    HEFT_CBOR_FAILED  /* status and message are set */
} heft_cbor_kind;

typedef enum heft_cbor_place {
    HEFT_CBOR_AT_ROOT,
    HEFT_CBOR_IN_ARRAY,
    HEFT_CBOR_AS_KEY,
    HEFT_CBOR_AS_VALUE
} heft_cbor_place;

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
    uint8_t place;                          /* heft_cbor_place */
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
 * shortest form.  A look that met something else is over, whatever it is asked for; nothing was read
 * then, and heft_cbor_next() tells what is there. */
typedef struct heft_cbor_look {
    const uint8_t *p, *end;
    bool fits;
} heft_cbor_look;

/* At the next item, which may nest so many containers. */
static inline heft_cbor_look heft_cbor_look_at(const heft_cbor *c, uint32_t levels)
{
    bool fits = !c->st && c->frame.left && c->max_depth - c->level >= levels;
    return (heft_cbor_look){ c->p, c->end, fits };
}

/* The bytes that are looked at are the item. */
static inline void heft_cbor_accept(heft_cbor *c, const heft_cbor_look *l)
{
    c->item = c->p;
    c->p = l->p;
    c->frame.left--;
}

/* A text, of fewer than 24 bytes. */
static inline void heft_cbor_look_text(heft_cbor_look *l, const char *text, size_t len)
{
    l->fits = l->fits && (size_t)(l->end - l->p) > len && *l->p == (0x60 | len) &&
              !memcmp(l->p + 1, text, len);
    l->p += l->fits ? 1 + len : 0;
}

/* What makes a head of one byte: 0x60 | 3 is a text of three bytes; these follow. */
static inline uint8_t heft_cbor_look_head(heft_cbor_look *l)
{
    l->fits = l->fits && l->p < l->end;
    return l->fits ? *l->p++ : 0xFF;
}

/* Any text of ASCII characters, fewer than 256. */
static inline heft_str heft_cbor_look_string(heft_cbor_look *l)
{
    enum { TEXT = 0x60, SHORTEST_LONG = 24 };
    uint8_t high = 0, info = heft_cbor_look_head(l) ^ TEXT;
    size_t len = info < SHORTEST_LONG ? info : heft_cbor_look_head(l);
    l->fits = l->fits &&
              (info < SHORTEST_LONG || (info == SHORTEST_LONG && len >= SHORTEST_LONG)) &&
              (size_t)(l->end - l->p) >= len;
    if (!l->fits)
        return (heft_str){ "", 0 };
    for (size_t i = 0; i < len; i++)
        high |= l->p[i];
    l->fits = high < 0x80;
    l->p += len;
    return (heft_str){ (const char *)l->p - len, len };
}

static inline uint64_t heft_cbor_look_u64(heft_cbor_look *l)
{
    uint8_t head = heft_cbor_look_head(l), bytes = 1, at = 0;
    uint64_t v = 0;
    if (head < 24)
        return head;
    bytes = (uint8_t)(bytes << (head & 3));
    l->fits = l->fits && head < 0x1C && l->end - l->p >= bytes;
    while (l->fits && at < bytes)
        v = v << 8 | l->p[at++];
    /* One byte holds what is below 2^8, eight what is not below 2^32. */
    l->fits = l->fits && (bytes == 1 ? v >= 24 : v >> 4 * bytes != 0);
    l->p += at;
    return v;
}

/* ---- writing ---- */

void heft_cbor_put_u64(heft_out *o, uint64_t v);
void heft_cbor_put_i64(heft_out *o, int64_t v);
void heft_cbor_put_text(heft_out *o, heft_str s);
void heft_cbor_put_bytes(heft_out *o, heft_str s);
void heft_cbor_put_array(heft_out *o, uint64_t members);
void heft_cbor_put_map(heft_out *o, uint64_t pairs);
void heft_cbor_put_bool(heft_out *o, bool v);
void heft_cbor_put_null(heft_out *o);
/* In the fewest of 2, 4 and 8 bytes that hold it bit for bit. */
void heft_cbor_put_f64(heft_out *o, double v);

#endif
