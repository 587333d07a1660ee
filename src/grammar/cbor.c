/* cbor.c - a reader for well-formed CBOR (RFC 8949).
 *
 * The head of an item is a byte of major type and additional information, and a number of up to
 * eight bytes.  The code favours heads of a single byte and short ASCII strings, the bulk of a
 * manifest.
 */
#include "grammar/cbor.h"

#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/text.h"

enum { BREAK = 0xFF, CANONICAL_NAN = 0x7E00 };

/* ---- errors ---- */

/* Set the error and return false (HEFT_CBOR_FAILED). */
static bool fail_at(heft_cbor *c, const uint8_t *where, heft_status st, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    c->st = heft_error_set_list(c->err, st, heft_cbor_offset(c, where), fmt, &ap);
    va_end(ap);
    if (st == HEFT_E_LIMIT) /* depth is the only limit */
        heft_error_rule(c->err, st, "heft/limit-depth");
    return false;
}

static uint64_t bytes_left(const heft_cbor *c)
{
    return (uint64_t)(c->end - c->p);
}

static bool too_short(heft_cbor *c, const char *what, uint64_t needed)
{
    return fail_at(c, c->p, HEFT_E_FORMAT, "CBOR: %s takes %U bytes, %U are left", what, needed,
                   bytes_left(c));
}

/* ---- heads ---- */

static inline uint64_t big_endian(const uint8_t *p, unsigned bytes)
{
    if (bytes == 1)
        return p[0];
    if (bytes == 2)
        return (uint32_t)p[0] << 8 | p[1];
    uint32_t high = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    if (bytes == 4)
        return high;
    return (uint64_t)high << 32 | (uint32_t)p[4] << 24 | (uint32_t)p[5] << 16 |
           (uint32_t)p[6] << 8 | p[7];
}

/* Smallest numbers in shortest form, by additional information from ONE_BYTE on. */
static const uint64_t shortest_from[] = { ONE_BYTE, 1u << 8, 1u << 16, UINT64_C(1) << 32 };

/* Read the number after a first byte with additional information info >= ONE_BYTE. */
static bool read_long_head(heft_cbor *c, uint8_t major, uint8_t info)
{
    const uint8_t *head = c->p - 1;
    if (info == NO_LENGTH && major >= MAJOR_BYTES && major <= MAJOR_MAP) {
        c->flags |= HEFT_CBOR_INDEFINITE;
        return true;
    }
    if (info > EIGHT_BYTES)
        return fail_at(c, head, HEFT_E_FORMAT, "CBOR: byte 0x%X does not begin an item",
                       (uint64_t)*head);
    unsigned bytes = 1u << (info - ONE_BYTE);
    if (bytes > bytes_left(c))
        return too_short(c, "the head of an item", bytes);
    c->u = big_endian(c->p, bytes);
    c->p += bytes;
    c->width = (uint8_t)bytes;
    if (major != MAJOR_7 && c->u < shortest_from[info - ONE_BYTE])
        c->flags |= HEFT_CBOR_NOT_SHORTEST;
    return true;
}

/* Read the head at c->p into *major, c->u and c->width.  Return false after an error. */
static inline bool read_head(heft_cbor *c, uint8_t *major)
{
    uint8_t head = *c->p++, info = head & 31;
    *major = head >> 5;
    c->u = info;
    c->width = 0;
    return heft_unlikely(info >= ONE_BYTE) ? read_long_head(c, *major, info) : true;
}

/* Skip the tags that begin with the head just read, and read the head of the tagged item.  Set
 * *tags to the number of tags. */
static bool skip_tags(heft_cbor *c, uint8_t *major, uint32_t *tags)
{
    while (*major == MAJOR_TAG) {
        if (c->level + ++*tags > c->max_depth)
            return fail_at(c, c->item, HEFT_E_LIMIT, "CBOR: nested deeper than %U levels",
                           (uint64_t)c->max_depth);
        c->tag = c->u;
        c->flags |= HEFT_CBOR_TAGGED;
        if (c->p == c->end || *c->p == BREAK)
            return fail_at(c, c->p, HEFT_E_FORMAT, "CBOR: a tag without an item");
        if (!read_head(c, major))
            return false;
    }
    return true;
}

/* ---- strings ---- */

/* Return the length of the valid UTF-8 at the start of p.  Most strings are short: read eight bytes
 * at once, beyond the end of the string if the data continues. */
static inline size_t valid_text(const uint8_t *p, size_t len, const uint8_t *end)
{
    static const uint64_t tops = UINT64_C(0x8080808080808080);
    uint64_t high = 0;
    size_t at = 0;
    for (; len - at >= 8; at += 8)
        high |= heft_le64(p + at);
    if (at < len && (size_t)(end - p) - at >= 8)
        high |= heft_le64(p + at) & ((UINT64_C(1) << 8 * (len - at)) - 1);
    else
        for (; at < len; at++)
            high |= p[at];
    return heft_unlikely(high & tops) ? heft_utf8_valid(p, len) : len;
}

/* Take c->u bytes of a string, or of a chunk, from c->p on. */
static inline bool take_string(heft_cbor *c, uint8_t major, heft_str *out)
{
    const uint8_t *p = c->p;
    if (heft_unlikely(c->u > bytes_left(c)))
        return too_short(c, major == MAJOR_TEXT ? "a text" : "a byte string", c->u);
    size_t len = (size_t)c->u, valid = len;
    if (major == MAJOR_TEXT)
        valid = valid_text(p, len, c->end);
    if (heft_unlikely(valid < len))
        return fail_at(c, p + valid, HEFT_E_FORMAT, "CBOR: a text is not UTF-8: byte 0x%X",
                       (uint64_t)p[valid]);
    c->p += len;
    *out = (heft_str){ (const char *)p, len };
    return true;
}

/* Take the next chunk of an indefinite-length string; a break sets *more to false. */
static bool take_chunk(heft_cbor *c, uint8_t major, heft_str *chunk, bool *more)
{
    uint8_t chunk_major, flags = c->flags;
    if (c->p == c->end)
        return too_short(c, "a string in chunks", 1);
    *more = *c->p != BREAK;
    if (!*more) {
        c->p++;
        return true;
    }
    c->flags = 0;
    if (!read_head(c, &chunk_major))
        return false;
    if (chunk_major != major || (c->flags & HEFT_CBOR_INDEFINITE))
        return fail_at(c, c->p - 1, HEFT_E_FORMAT,
                       "CBOR: a chunk has another type than its string");
    c->flags |= flags;
    return take_string(c, major, chunk);
}

/* Join all `total` bytes of the chunks in the arena.  The chunks were validated before. */
static bool join_chunks(heft_cbor *c, const uint8_t *first, uint8_t major, size_t total)
{
    const uint8_t *end = c->p;
    bool more = true;
    size_t at = 0;
    char *to = c->arena ? heft_arena_alloc(c->arena, total, 1) : NULL;
    if (!to) {
        if (c->arena)
            return fail_at(c, c->item, HEFT_E_NOMEM, "CBOR: no memory for a string of %U bytes",
                           (uint64_t)total);
        return fail_at(c, c->item, HEFT_E_UNSUPPORTED,
                       "CBOR: a string in chunks is not supported here");
    }
    c->p = first;
    for (heft_str chunk; c->p < end && take_chunk(c, major, &chunk, &more) && more;) {
        memcpy(to + at, chunk.ptr, chunk.len);
        at += chunk.len;
    }
    c->str = (heft_str){ to, total };
    return !c->st;
}

static bool read_chunks(heft_cbor *c, uint8_t major, bool want_text)
{
    const uint8_t *first = c->p;
    size_t total = 0, count = 0;
    bool more = true;
    c->str = (heft_str){ "", 0 };
    for (heft_str chunk;;) {
        if (!take_chunk(c, major, &chunk, &more))
            return false;
        if (!more)
            break;
        total += chunk.len; /* cannot overflow: at most the size of the data */
        c->str = chunk.len ? chunk : c->str;
        count += chunk.len > 0;
    }
    return count < 2 || !want_text || join_chunks(c, first, major, total);
}

/* ---- containers ---- */

/* RFC 8949 §4.2.1: the encoded keys ascend bytewise.  Check the key from `at` to c->p. */
static bool check_key(heft_cbor *c, const uint8_t *at)
{
    heft_cbor_frame *f = &c->frame;
    heft_str key = { (const char *)at, (size_t)(c->p - at) };
    heft_str previous = { (const char *)c->start + f->key, f->key_end - f->key };
    int order = previous.len ? heft_str_order(previous, key) : -1;
    if (order >= 0)
        fail_at(c, at, HEFT_E_FORMAT,
                order ? "CBOR: the keys of a map are not sorted" : "CBOR: duplicate key in a map");
    f->key = (uint32_t)(at - c->start);
    f->key_end = (uint32_t)(c->p - c->start);
    return order < 0;
}

static const uint32_t max_items = UINT32_MAX - 1; /* even, so that a map has whole pairs */

static heft_cbor_kind open_container(heft_cbor *c, bool is_map, uint32_t tags)
{
    bool is_indefinite = c->flags & HEFT_CBOR_INDEFINITE;
    if (heft_unlikely(!is_indefinite && c->u > bytes_left(c) >> is_map))
        return fail_at(c, c->item, HEFT_E_FORMAT,
                       is_map ? "CBOR: a map of %U pairs is announced, %U bytes are left"
                              : "CBOR: an array of %U members is announced, %U bytes are left",
                       c->u, bytes_left(c));
    if (heft_unlikely(c->level + tags >= c->max_depth))
        return fail_at(c, c->item, HEFT_E_LIMIT, "CBOR: nested deeper than %U levels",
                       (uint64_t)c->max_depth);
    c->outer[c->depth++] = c->frame;
    c->level += tags + 1;
    c->frame = (heft_cbor_frame){ .left = is_indefinite ? max_items : (uint32_t)c->u << is_map,
                                  .tags = (uint16_t)tags,
                                  .is_map = is_map,
                                  .is_indefinite = is_indefinite,
                                  .at = (uint32_t)(c->item - c->start) };
    return is_map ? HEFT_CBOR_MAP : HEFT_CBOR_ARRAY;
}

static heft_cbor_kind close_container(heft_cbor *c)
{
    bool is_map = c->frame.is_map;
    const uint8_t *at = c->start + c->frame.at;
    c->level -= c->frame.tags + 1u;
    c->frame = c->outer[--c->depth];
    c->item = c->p;
    if (heft_unlikely(c->strict && c->frame.is_map && c->frame.left & 1 && !check_key(c, at)))
        return HEFT_CBOR_FAILED;
    return is_map ? HEFT_CBOR_MAP_END : HEFT_CBOR_ARRAY_END;
}

static heft_cbor_kind read_break(heft_cbor *c)
{
    if (!c->frame.is_indefinite)
        return fail_at(c, c->p, HEFT_E_FORMAT,
                       "CBOR: a break outside of an indefinite-length item");
    if (c->frame.is_map && c->frame.left & 1)
        return fail_at(c, c->p, HEFT_E_FORMAT, "CBOR: a map ends after a key without a value");
    c->p++;
    return close_container(c);
}

/* ---- floats ---- */

static uint64_t as_f64(const heft_cbor *c)
{
    return c->width == 2   ? heft_cbor_widen(c->u, F16_MANT, F16_EXP)
           : c->width == 4 ? heft_cbor_widen(c->u, F32_MANT, F32_EXP)
                           : c->u;
}

/* ---- items ---- */

static heft_cbor_kind read_major_7(heft_cbor *c)
{
    if (c->width > 1) {
        /* Deterministic encoding has a single form of every float; RFC 8949 §4.2.1, §4.2.2. */
        uint64_t bits = as_f64(c), narrow;
        bool is_nan = bits << 1 > UINT64_C(0x7FF) << (F64_MANT + 1);
        if (is_nan ? c->width != 2 || c->u != CANONICAL_NAN
                   : (c->width == 8 && heft_cbor_narrow(&narrow, bits, F32_MANT, F32_EXP)) ||
                         (c->width == 4 && heft_cbor_narrow(&narrow, bits, F16_MANT, F16_EXP)))
            c->flags |= HEFT_CBOR_NOT_SHORTEST;
        return HEFT_CBOR_FLOAT;
    }
    if (c->width == 1 && c->u < 32)
        return fail_at(c, c->item, HEFT_E_FORMAT, "CBOR: simple value %U is encoded in two bytes",
                       c->u);
    return c->u >= FALSE && c->u <= UNDEFINED ? HEFT_CBOR_FALSE + (heft_cbor_kind)(c->u - FALSE)
                                              : HEFT_CBOR_SIMPLE;
}

/* Read the rest of the item with the head just read. */
static inline heft_cbor_kind read_item(heft_cbor *c, uint8_t major, uint32_t tags, bool want_text)
{
    switch (major) {
    case MAJOR_UINT:
        return HEFT_CBOR_UINT;
    case MAJOR_NINT:
        return HEFT_CBOR_NINT;
    case MAJOR_BYTES:
    case MAJOR_TEXT:
        if (heft_unlikely(c->flags & HEFT_CBOR_INDEFINITE) ? !read_chunks(c, major, want_text)
                                                           : !take_string(c, major, &c->str))
            return HEFT_CBOR_FAILED;
        return major == MAJOR_TEXT ? HEFT_CBOR_TEXT : HEFT_CBOR_BYTES;
    case MAJOR_ARRAY:
        return open_container(c, false, tags);
    case MAJOR_MAP:
        return open_container(c, true, tags);
    default:
        return read_major_7(c);
    }
}

/* Read the next item.  want_text: join the chunks of a string, instead of only checking the
 * chunks. */
static inline heft_cbor_kind next_item(heft_cbor *c, bool want_text)
{
    uint8_t major;
    uint32_t tags = 0;
    if (heft_unlikely(c->st))
        return HEFT_CBOR_FAILED;
    if (!c->frame.left)
        return c->depth ? close_container(c) : HEFT_CBOR_END;
    if (heft_unlikely(c->p == c->end))
        return too_short(c, "the next item", 1);
    if (heft_unlikely(*c->p == BREAK))
        return read_break(c);
    c->item = c->p;
    c->flags = 0;
    c->context = !c->depth           ? HEFT_CBOR_AT_ROOT
                 : !c->frame.is_map  ? HEFT_CBOR_IN_ARRAY
                 : c->frame.left & 1 ? HEFT_CBOR_AS_VALUE
                                     : HEFT_CBOR_AS_KEY;
    if (!read_head(c, &major) ||
        (heft_unlikely(major == MAJOR_TAG) && !skip_tags(c, &major, &tags)))
        return HEFT_CBOR_FAILED;
    c->frame.left--;
    heft_cbor_kind k = read_item(c, major, tags, want_text);
    if (c->strict && !c->st) {
        if (heft_unlikely(c->flags))
            return fail_at(
                c, c->item, HEFT_E_FORMAT, "CBOR: %s is not allowed in deterministic encoding",
                c->flags & HEFT_CBOR_TAGGED       ? "a tag"
                : c->flags & HEFT_CBOR_INDEFINITE ? "an indefinite length"
                                                  : "a number in more bytes than necessary");
        if (c->context == HEFT_CBOR_AS_KEY && k != HEFT_CBOR_ARRAY && k != HEFT_CBOR_MAP &&
            !check_key(c, c->item))
            return HEFT_CBOR_FAILED;
    }
    return k;
}

heft_cbor heft_cbor_open(const void *data, size_t len, uint64_t base, uint32_t max_depth,
                         heft_arena *arena, heft_error *err)
{
    const uint8_t *first = len ? data : (const uint8_t *)"";
    heft_cbor c = { .p = first,
                    .end = first + len,
                    .start = first,
                    .base = base,
                    .arena = arena,
                    .err = err,
                    .max_depth = max_depth < HEFT_CBOR_DEPTH ? max_depth : HEFT_CBOR_DEPTH,
                    .item = first,
                    .frame = { .left = 1 } };
    if (len > max_items)
        fail_at(&c, first, HEFT_E_LIMIT, "CBOR: %U bytes exceed the limit of 4 GiB", (uint64_t)len);
    return c;
}

heft_cbor_kind heft_cbor_next(heft_cbor *c)
{
    return next_item(c, true);
}

heft_status heft_cbor_skip(heft_cbor *c, heft_cbor_kind k)
{
    if (k != HEFT_CBOR_ARRAY && k != HEFT_CBOR_MAP)
        return c->st;
    for (uint32_t parent = c->depth - 1; c->depth > parent && !c->st;)
        next_item(c, false);
    return c->st;
}

bool heft_cbor_u64(uint64_t *out, const heft_cbor *c, heft_cbor_kind k)
{
    enum { BIGNUM = 2 };
    *out = c->u;
    if (k != HEFT_CBOR_BYTES || !(c->flags & HEFT_CBOR_TAGGED) || c->tag != BIGNUM)
        return k == HEFT_CBOR_UINT;
    *out = 0;
    for (size_t i = 0; i < c->str.len; i++) {
        if (*out >> 56)
            return false;
        *out = *out << 8 | (uint8_t)c->str.ptr[i];
    }
    return true;
}

void heft_cbor_f64(double *out, const heft_cbor *c)
{
    uint64_t bits = as_f64(c);
    memcpy(out, &bits, sizeof bits);
}

heft_status heft_cbor_fail(heft_cbor *c, const char *fmt, ...)
{
    if (c->st)
        return c->st;
    va_list ap;
    va_start(ap, fmt);
    c->st = heft_error_set_list(c->err, HEFT_E_FORMAT, heft_cbor_offset(c, c->item), fmt, &ap);
    va_end(ap);
    return c->st;
}
