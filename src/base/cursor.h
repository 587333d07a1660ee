/* cursor.h - a bounded reader over a window of the file that may be incomplete.
 *
 * A cursor never moves past its end and needs no check after every read: after the first failure
 * it stays failed and every read gives zero.  Parse a record in straight lines, then ask c.st:
 *   HEFT_AGAIN      the bytes are in the file but not at hand; what is wanted was recorded
 *   HEFT_E_FORMAT   they lie past the end; heft_window.err tells where
 */
#ifndef HEFT_CURSOR_H
#define HEFT_CURSOR_H
#include <string.h>

#include <heft/heft.h>

#include "base/compiler.h"
#include "base/text.h"

typedef struct heft_window {
    uint64_t size; /* of the whole file */
    /* Bytes from off on, contiguous, at most want; *have says how many are at hand, perhaps 0. */
    const uint8_t *(*window)(struct heft_window *in, uint64_t off, uint64_t want, uint64_t *have);
    /* Records that [off, off + len) is wanted. */
    void (*need)(struct heft_window *in, uint64_t off, uint64_t len);
    /* Into out, the first bytes of what a compressed range decodes to: *len says how many are wanted, then how many
     * there are.  Fewer: it decodes to no more.  HEFT_AGAIN as above; HEFT_E_UNSUPPORTED without a
     * decoder.  NULL: there is none at all. */
    heft_status (*decode)(struct heft_window *in, heft_encoding e, heft_range stored, void *out,
                          size_t *len);
    heft_error *err;
} heft_window;

/* Bytes that are all at hand and in no file, as one: they stay the caller's, and places are counted from their first. */
typedef struct heft_window_bytes {
    heft_window in;
    const uint8_t *bytes;
} heft_window_bytes;
heft_window_bytes heft_window_of(const void *bytes, uint64_t size, heft_error *err);

/* heft_window.decode, whether it is there or not. */
heft_status heft_window_decode(heft_window *in, heft_encoding e, heft_range stored, void *out,
                               size_t *len);

typedef struct heft_cur {
    const uint8_t *p, *end, *start; /* of what is at hand */
    uint64_t base, limit;           /* file offsets of start, and of the end of what may be read */
    heft_window *in;
    const char *what; /* names the structure in messages: "the header" */
    heft_status st;
} heft_cur;

/* Over [off, off + len) of the file, cut at its end. */
heft_cur heft_cur_open(heft_window *in, uint64_t off, uint64_t len, const char *what);
/* The same when all of it is needed at once: fails when it does not lie in the file, AGAIN when
 * it is not at hand. */
heft_cur heft_cur_whole(heft_window *in, uint64_t off, uint64_t len, const char *what);
/* Takes the slow way: records what is missing and sets c->st. */
void heft_cur_underrun(heft_cur *c, uint64_t n);
/* Sets the status and the message, at the cursor's place, unless it has failed before. */
heft_status heft_cur_fail(heft_cur *c, const char *fmt, ...);

/* Passes n bytes that need not be at hand; fails when they end behind the limit. */
void heft_cur_skip(heft_cur *c, uint64_t n);
/* For parsers that learn where the next of many records is from the one before, and were told AGAIN at `at`: asks for
 * the more bytes the more records there are, so that beginning anew each time stays in proportion to the file. */
void heft_window_ask_ahead(heft_window *in, uint64_t at, uint64_t records);

static inline uint64_t heft_cur_pos(const heft_cur *c)
{
    return c->base + (uint64_t)(c->p - c->start);
}

/* What is left up to the limit, at hand or not. */
static inline uint64_t heft_cur_left(const heft_cur *c)
{
    return c->limit - heft_cur_pos(c);
}

/* n bytes in place, or NULL. */
static inline const uint8_t *heft_cur_take(heft_cur *c, uint64_t n)
{
    if (heft_unlikely(n > (uint64_t)(c->end - c->p))) {
        heft_cur_underrun(c, n);
        return NULL;
    }
    const uint8_t *p = c->p;
    c->p += n;
    return p;
}

static inline uint16_t heft_le16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint64_t heft_be64(const uint8_t *p)
{
    return (uint64_t)p[0] << 56 | (uint64_t)p[1] << 48 | (uint64_t)p[2] << 40 |
           (uint64_t)p[3] << 32 | (uint64_t)p[4] << 24 | (uint64_t)p[5] << 16 |
           (uint64_t)p[6] << 8 | (uint64_t)p[7];
}

static inline uint8_t heft_cur_u8(heft_cur *c)
{
    const uint8_t *p = heft_cur_take(c, 1);
    return p ? *p : 0;
}

static inline uint16_t heft_cur_u16(heft_cur *c)
{
    const uint8_t *p = heft_cur_take(c, 2);
    return p ? heft_le16(p) : (uint16_t)0;
}

static inline uint32_t heft_cur_u32(heft_cur *c)
{
    const uint8_t *p = heft_cur_take(c, 4);
    return p ? heft_le32(p) : 0;
}

static inline uint64_t heft_cur_u64(heft_cur *c)
{
    const uint8_t *p = heft_cur_take(c, 8);
    return p ? heft_le64(p) : 0;
}

/* The n bytes at p, which were taken; heft_cur_text() for what is not plain. */
heft_str heft_cur_text_at(heft_cur *c, const uint8_t *p, uint64_t n, const char *what);

/* n bytes of UTF-8; fails when they are not.  what names them in the message: "the key". */
static inline heft_str heft_cur_text(heft_cur *c, uint64_t n, const char *what)
{
    const uint8_t *p = heft_cur_take(c, n);
    if (p && heft_is_ascii_name(p, (size_t)n))
        return (heft_str){ (const char *)p, (size_t)n };
    return heft_cur_text_at(c, p, n, what);
}

#endif
