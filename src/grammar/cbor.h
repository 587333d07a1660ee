/* cbor.h - a pull reader for CBOR in memory, and a writer of shortest forms (RFC 8949).
 *
 * The reader builds no tree: the caller asks for the next item and stores the values that matter.
 * Strings are borrowed from the data; a string of several chunks is joined in the caller's arena.
 * Depth is bounded without recursion, and every announced length is checked against the remaining
 * bytes.
 *
 * Tags are skipped: the flags of the following item say that the item was tagged.
 */
#ifndef HEFT_CBOR_H
#define HEFT_CBOR_H
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cursor.h"
#include "base/out.h"

typedef enum heft_cbor_kind {
    HEFT_CBOR_FAILED, /* status and message are set */
    HEFT_CBOR_END,    /* the root item is complete; the following bytes were not read */
    HEFT_CBOR_UINT,   /* u */
    HEFT_CBOR_NINT,   /* -1 - u */
    HEFT_CBOR_BYTES,
    HEFT_CBOR_TEXT,
    HEFT_CBOR_ARRAY, /* u: number of members, unless HEFT_CBOR_INDEFINITE */
    HEFT_CBOR_ARRAY_END,
    HEFT_CBOR_MAP, /* u: number of pairs, unless HEFT_CBOR_INDEFINITE */
    HEFT_CBOR_MAP_END,
    HEFT_CBOR_FALSE,
    HEFT_CBOR_TRUE,
    HEFT_CBOR_NULL,
    HEFT_CBOR_UNDEFINED,
    HEFT_CBOR_SIMPLE, /* u: any other simple value */
    HEFT_CBOR_FLOAT   /* u: the bits; width: 2, 4 or 8 bytes */
} heft_cbor_kind;

typedef enum heft_cbor_context {
    HEFT_CBOR_AT_ROOT,
    HEFT_CBOR_IN_ARRAY,
    HEFT_CBOR_AS_KEY,
    HEFT_CBOR_AS_VALUE
} heft_cbor_context;

/* heft_cbor.flags: how an item deviates from deterministic encoding */
enum {
    HEFT_CBOR_NOT_SHORTEST = 1, /* a shorter encoding exists; a NaN other than F9 7E00 */
    HEFT_CBOR_INDEFINITE = 2,   /* indefinite length */
    HEFT_CBOR_TAGGED = 4        /* `tag` holds the number of the innermost tag */
};

/* Limited because a reader lives on the stack, often two. */
enum { HEFT_CBOR_DEPTH = HEFT_IS_SMALL ? 6 : 128 };

/* An open container, or the frame around the root item.  Offsets count from heft_cbor.start. */
typedef struct heft_cbor_frame {
    uint32_t left;         /* remaining items; indefinite length: an even number minus items read */
    uint32_t at;           /* offset of the container */
    uint32_t key, key_end; /* strict: range of the latest key of a map; empty: no key yet */
    uint16_t tags;         /* number of tags before the container */
    bool is_map, is_indefinite;
} heft_cbor_frame;

typedef struct heft_cbor {
    const uint8_t *p, *end, *start;
    uint64_t base;     /* file offset of start, for messages */
    heft_arena *arena; /* joins strings of several chunks; NULL: HEFT_E_UNSUPPORTED */
    heft_error *err;
    uint32_t depth;            /* open containers */
    uint32_t level, max_depth; /* open containers and preceding tags; limit of level */
    bool strict; /* accept deterministic encoding only: no flags, sorted keys; set after opening */
    heft_status st;
    /* The item read last.  p is after the item, or after the head of a container. */
    const uint8_t *item; /* start of the item or of the first tag */
    uint64_t u, tag;
    heft_str str;
    uint8_t flags, width;
    uint8_t context;                        /* heft_cbor_context */
    heft_cbor_frame frame;                  /* the innermost container */
    heft_cbor_frame outer[HEFT_CBOR_DEPTH]; /* the enclosing containers */
} heft_cbor;

/* Open a reader for less than 4 GiB of data.  max_depth 1 allows an array that contains no
 * array. */
heft_cbor heft_cbor_open(const void *data, size_t len, uint64_t base, uint32_t max_depth,
                         heft_arena *arena, heft_error *err);
heft_cbor_kind heft_cbor_next(heft_cbor *c);
/* Skip the rest of the item with the head k.  Skipped items are checked but take no memory. */
heft_status heft_cbor_skip(heft_cbor *c, heft_cbor_kind k);
/* Get the last item, of kind k, as an unsigned number.  Return false unless the item is an unsigned
 * integer, or a bignum that fits in 64 bits. */
bool heft_cbor_u64(uint64_t *out, const heft_cbor *c, heft_cbor_kind k);
/* Get the value of the last item, a float.  A returned double would pass through a register of
 * the x87 on i386, which changes signalling NaNs. */
void heft_cbor_f64(double *out, const heft_cbor *c);
/* Set the error, with the offset of the last item. */
heft_status heft_cbor_fail(heft_cbor *c, const char *fmt, ...);

/* Return the file offset of a position in the data. */
static inline uint64_t heft_cbor_offset(const heft_cbor *c, const uint8_t *p)
{
    return c->base + (uint64_t)(p - c->start);
}

/* ---- fast path ---- */

/* Reads records that are nearly always encoded alike.  Each heft_cbor_fast_...() function checks
 * for an expected item in shortest form and advances.  After a function has returned false the fast
 * path is over: nothing was consumed, and heft_cbor_next() reads the items. */
typedef struct heft_cbor_fast {
    const uint8_t *p, *end;
} heft_cbor_fast;

/* Begin at the next `items` items of the current container, with at most `levels` nested
 * containers. */
static inline bool heft_cbor_fast_at(heft_cbor_fast *f, const heft_cbor *c, uint32_t items,
                                     uint32_t levels)
{
    *f = (heft_cbor_fast){ c->p, c->end };
    return !c->st && c->frame.left >= items && c->max_depth - c->level >= levels;
}

/* Consume the items that were checked, `items` at the level of the container. */
static inline void heft_cbor_accept(heft_cbor *c, const heft_cbor_fast *f, uint32_t items)
{
    c->item = c->p;
    c->p = f->p;
    c->frame.left -= items;
}

/* Expect the given text, shorter than 24 bytes. */
static inline bool heft_cbor_fast_text(heft_cbor_fast *f, const char *text, size_t len)
{
    if ((size_t)(f->end - f->p) <= len || *f->p != (0x60 | len) || memcmp(f->p + 1, text, len) != 0)
        return false;
    f->p += 1 + len;
    return true;
}

enum { HEFT_CBOR_HEAD_TEXT = 0x60, HEFT_CBOR_HEAD_ARRAY = 0x80, HEFT_CBOR_HEAD_MAP = 0xA0 };

/* Expect the head of a text, array or map of *n bytes, members or pairs, *n <= max < 24. */
static inline bool heft_cbor_fast_head(heft_cbor_fast *f, uint32_t head, uint32_t max, uint32_t *n)
{
    *n = f->p < f->end ? *f->p++ ^ head : UINT32_MAX;
    return *n <= max;
}

/* Expect any ASCII text shorter than 256 bytes. */
static inline bool heft_cbor_fast_string(heft_cbor_fast *f, heft_str *out)
{
    enum { SHORT = 23, LONG = 24 };
    static const uint64_t tops = UINT64_C(0x8080808080808080);
    uint32_t len;
    if (!heft_cbor_fast_head(f, HEFT_CBOR_HEAD_TEXT, LONG, &len))
        return false;
    if (len == LONG && (f->p == f->end || (len = *f->p++) <= SHORT))
        return false;
    /* The loop reads eight bytes at once, up to eight bytes past the text. */
    if ((size_t)(f->end - f->p) < len + sizeof(uint64_t))
        return false;
    uint64_t high = 0;
    uint32_t at = 0;
    for (; len - at >= sizeof high; at += (uint32_t)sizeof high)
        high |= heft_le64(f->p + at);
    high |= heft_le64(f->p + at) & ((UINT64_C(1) << 8 * (len - at)) - 1);
    *out = (heft_str){ (const char *)f->p, len };
    f->p += len;
    return !(high & tops);
}

/* Expect a number of more than one byte. */
static inline bool heft_cbor_fast_long(heft_cbor_fast *f, uint64_t *out)
{
    uint32_t info = *f->p++ ^ 24u, bytes = 1u << (info & 3);
    if (info > 3 || (size_t)(f->end - f->p) < bytes)
        return false;
    if ((size_t)(f->end - f->p) >= sizeof *out) {
        *out = heft_be64(f->p) >> (64 - 8 * bytes);
    } else {
        *out = 0;
        for (uint32_t at = 0; at < bytes; at++)
            *out = *out << 8 | f->p[at];
    }
    f->p += bytes;
    /* Shortest form: 1 byte for 24 and more, 2 from 2^8, 4 from 2^16, 8 from 2^32. */
    return bytes == 1 ? *out >= 24 : *out >> 4 * bytes != 0;
}

static inline bool heft_cbor_fast_u64(heft_cbor_fast *f, uint64_t *out)
{
    if (f->p == f->end || *f->p >= 24)
        return f->p < f->end && heft_cbor_fast_long(f, out);
    *out = *f->p++;
    return true;
}

/* Expect an array of *n unsigned numbers, *n <= max < 24, and store each as eight bytes,
 * little-endian. */
static inline bool heft_cbor_fast_u64s(heft_cbor_fast *f, uint8_t *out, uint32_t max, uint32_t *n)
{
    bool fits = heft_cbor_fast_head(f, HEFT_CBOR_HEAD_ARRAY, max, n);
    for (uint32_t i = 0; fits && i < *n; i++) {
        uint64_t v;
        fits = heft_cbor_fast_u64(f, &v);
        if (fits)
            heft_put_le64(out + 8 * i, v);
    }
    return fits;
}

/* ---- writing ---- */

void heft_cbor_put_u64(heft_out *o, uint64_t v);
void heft_cbor_put_i64(heft_out *o, int64_t v);
void heft_cbor_put_text(heft_out *o, heft_str s);
void heft_cbor_put_key(heft_out *o, const char *key);
void heft_cbor_put_bytes(heft_out *o, heft_str s);
void heft_cbor_put_array(heft_out *o, uint64_t members);
void heft_cbor_put_map(heft_out *o, uint64_t pairs);
void heft_cbor_put_bool(heft_out *o, bool v);
void heft_cbor_put_null(heft_out *o);
/* Emit a float in the fewest of 2, 4 and 8 bytes that preserve all bits. */
void heft_cbor_put_f64(heft_out *o, double v);

/* ---- encoding of item heads and conversion between float sizes ---- */

enum { MAJOR_UINT, MAJOR_NINT, MAJOR_BYTES, MAJOR_TEXT }; /* major types */
enum { MAJOR_ARRAY = 4, MAJOR_MAP, MAJOR_TAG, MAJOR_7 };
enum { ONE_BYTE = 24, TWO_BYTES, FOUR_BYTES, EIGHT_BYTES, NO_LENGTH = 31 }; /* additional info */
enum { FALSE = 20, TRUE, NIL, UNDEFINED };                                  /* simple values */

enum { F16_MANT = 10, F16_EXP = 5, F32_MANT = 23, F32_EXP = 8, F64_MANT = 52, F64_EXP = 11 };

/* Convert the bits of a smaller float to the bits of a double, exactly; NaNs keep the payload. */
static inline uint64_t heft_cbor_widen(uint64_t bits, unsigned mant_bits, unsigned exp_bits)
{
    uint64_t sign = bits >> (mant_bits + exp_bits) << 63, low = 64 - mant_bits;
    uint64_t mant = bits << low >> low, max_exp = (1u << exp_bits) - 1;
    uint64_t exp = bits >> mant_bits & max_exp, bias = (max_exp >> 1);
    if (exp == max_exp)
        return sign | UINT64_C(0x7FF) << F64_MANT | mant << (F64_MANT - mant_bits);
    if (!exp && !mant)
        return sign;
    if (!exp) { /* subnormal: normalise, so that the leading 1 becomes the implicit bit */
        for (exp = 1; !(mant >> mant_bits); exp--)
            mant <<= 1;
        mant ^= UINT64_C(1) << mant_bits;
    }
    return sign | (exp + 1023 - bias) << F64_MANT | mant << (F64_MANT - mant_bits);
}

/* Convert the bits of a double to the bits of a smaller float; return false if bits would be
 * lost. */
static inline bool heft_cbor_narrow(uint64_t *out, uint64_t bits, unsigned mant_bits,
                                    unsigned exp_bits)
{
    unsigned cut = F64_MANT - mant_bits;
    uint64_t mant = bits & ((UINT64_C(1) << F64_MANT) - 1), max_exp = (1u << exp_bits) - 1;
    int32_t exp = (int32_t)(bits >> F64_MANT & 0x7FF) - 1023, bias = (int32_t)(max_exp >> 1);
    *out = bits >> 63 << (mant_bits + exp_bits);
    if (!(bits << 1))
        return true;
    if (exp == 1024) { /* infinity or NaN */
        *out |= max_exp << mant_bits | mant >> cut;
        return !(mant << (64 - cut));
    }
    if (exp > bias || exp < 1 - bias - (int32_t)mant_bits)
        return false;
    if (exp < 1 - bias) {
        cut += (unsigned)(1 - bias - exp);
        mant |= UINT64_C(1) << F64_MANT;
    } else {
        *out |= (uint64_t)(exp + bias) << mant_bits;
    }
    *out |= mant >> cut;
    return !(mant << (64 - cut));
}

#endif
