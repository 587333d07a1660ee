/* cursor.h - a bounded reader over a window of the file; the window may lack bytes.
 *
 * A cursor never moves past the end and needs no check after every read: after the first failure
 * the cursor stays failed and every read returns zero.  Parse a record in straight lines, then
 * check c.st:
 *   HEFT_AGAIN      the bytes are in the file but not in memory; the missing range was recorded
 *   HEFT_E_FORMAT   the bytes lie past the end; heft_window.err has the offset
 */
#ifndef HEFT_CURSOR_H
#define HEFT_CURSOR_H
#include <string.h>

#include <heft/heft.h>

#include "base/compiler.h"
#include "base/text.h"

struct heft_container; /* heft_ext.h */

typedef struct heft_packed_range { /* a file in an archive */
    heft_range stored;
    uint64_t content; /* size of the file; the stored bytes, unless it is deflated */
    uint32_t crc;     /* CRC-32 of the content, if it is deflated */
    bool is_deflated;
} heft_packed_range;

typedef struct heft_window {
    uint64_t size; /* size of the whole file in bytes */
    /* Return contiguous bytes from `off` on.  Set *have to the number of bytes in memory, at most
     * `want` and perhaps 0. */
    const uint8_t *(*window)(struct heft_window *in, uint64_t off, uint64_t want, uint64_t *have);
    /* Record that the parser needs [off, off + len). */
    void (*need)(struct heft_window *in, uint64_t off, uint64_t len);
    /* Decode the first *len bytes of a compressed range into out; set *len to the bytes written,
     * fewer only if the range decodes to fewer.  HEFT_AGAIN as above; HEFT_E_UNSUPPORTED without a
     * decoder for the encoding.  NULL if the window cannot decode. */
    heft_status (*decode)(struct heft_window *in, heft_encoding e, heft_range stored, void *out,
                          size_t *len);
    /* Open the HDF5 file in a range, whose lists are valid until the file is closed.
     * HEFT_E_UNSUPPORTED without a library for HDF5.  NULL if the window has no such function. */
    heft_status (*container)(struct heft_window *in, const struct heft_container **out,
                             const heft_packed_range *where);
    heft_error *err;
} heft_window;

/* A window over bytes in memory, which the caller keeps; offsets count from the first byte. */
typedef struct heft_window_bytes {
    heft_window in;
    const uint8_t *bytes;
} heft_window_bytes;
heft_window_bytes heft_window_of(const void *bytes, uint64_t size, heft_error *err);

/* Call heft_window.decode; HEFT_E_UNSUPPORTED if the window has no such function. */
heft_status heft_window_decode(heft_window *in, heft_encoding e, heft_range stored, void *out,
                               size_t *len);

typedef struct heft_cur {
    const uint8_t *p, *end, *start; /* position, end and start of the bytes in memory */
    uint64_t base, limit;           /* file offsets of start and of the end of the readable range */
    heft_window *in;
    const char *what; /* name of the structure in messages: "the header" */
    heft_status st;
} heft_cur;

/* Open a cursor over [off, off + len), clipped at the end of the file. */
heft_cur heft_cur_open(heft_window *in, uint64_t off, uint64_t len, const char *what);
/* Open a cursor and require the whole range: HEFT_E_FORMAT if the range ends past the file,
 * HEFT_AGAIN if bytes are not in memory. */
heft_cur heft_cur_whole(heft_window *in, uint64_t off, uint64_t len, const char *what);
/* Set c->st because n bytes are not in memory: record the range, or report that the structure is
 * too short. */
void heft_cur_underrun(heft_cur *c, uint64_t n);
/* Fail with a message at the cursor's offset, unless the cursor has failed before; return c->st. */
heft_status heft_cur_fail(heft_cur *c, const char *fmt, ...);
/* Fail as heft_cur_fail() does, with the file offset `at`. */
heft_status heft_cur_fail_at(heft_cur *c, uint64_t at, const char *fmt, ...);

/* Skip n bytes, which need not be in memory; fail if the limit is less than n bytes away. */
void heft_cur_skip(heft_cur *c, uint64_t n);
/* Request bytes from `at` on, after HEFT_AGAIN, in a parser that finds each record through the
 * preceding record.  The request grows with the number of records parsed so far, so that the total
 * cost of restarting the parser stays proportional to the file. */
void heft_window_ask_ahead(heft_window *in, uint64_t at, uint64_t records);

static inline uint64_t heft_cur_pos(const heft_cur *c)
{
    return c->base + (uint64_t)(c->p - c->start);
}

/* Number of bytes up to the limit, in memory or not. */
static inline uint64_t heft_cur_left(const heft_cur *c)
{
    return c->limit - heft_cur_pos(c);
}

/* Consume n bytes and return a pointer to the bytes; NULL after a failure. */
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

/* Check the n bytes at p, just consumed, as heft_cur_text() does; p may be NULL. */
heft_str heft_cur_text_at(heft_cur *c, const uint8_t *p, uint64_t n, const char *what);

/* Consume n bytes of text; fail if the bytes are not UTF-8.  `what` names the text in the message:
 * "the key". */
static inline heft_str heft_cur_text(heft_cur *c, uint64_t n, const char *what)
{
    const uint8_t *p = heft_cur_take(c, n);
    if (p && heft_is_ascii_name(p, (size_t)n))
        return (heft_str){ (const char *)p, (size_t)n };
    return heft_cur_text_at(c, p, n, what);
}

#endif
