/* outbuf.h - a buffered writer to a file descriptor or to growing memory. After the first failure
 * writes do nothing; the caller reports the error at the end.
 *
 * This room turns values into text: buffers, numbers, JSON, escapes, words. It knows no models. */
#ifndef HEFT_CLI_OUTBUF_H
#define HEFT_CLI_OUTBUF_H
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <heft/heft.h>

typedef struct outbuf {
    char *buf;
    size_t used, capacity;
    int fd;           /* -1: memory only */
    int os;           /* errno of the first failure, or 0 */
    bool is_borrowed; /* buf is the caller's: the buffer does not grow */
    /* Write instead of write(2) to fd; return an errno value, or 0. NULL: write to fd. */
    int (*write)(void *ctx, const void *p, size_t n);
    void *ctx;
} outbuf;

void out_open(outbuf *o, int fd);
/* Write to fd with a buffer of the caller, so that nothing but a failed write can go wrong. A
 * formatted piece must be shorter than the buffer. */
void out_open_fixed(outbuf *o, int fd, char *buf, size_t capacity);
void out_free(outbuf *o);
/* Slow path of out_reserve(): flush or grow the buffer. */
bool out_grow(outbuf *o, size_t n);
bool out_flush(outbuf *o);
void out_u64(outbuf *o, uint64_t v);
void out_i64(outbuf *o, int64_t v);
void out_fill(outbuf *o, char c, size_t n);
void out_format(outbuf *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
void out_vformat(outbuf *o, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
void out_hex(outbuf *o, const void *p, size_t n);
/* Write a size as "1.5 KiB". */
void out_size(outbuf *o, uint64_t bytes);
/* Write a number as "1.78 B": three digits and K, M, B or T for powers of 1000; all digits below
 * 1000. */
void out_count(outbuf *o, uint64_t n);
/* Terminate the text with a zero byte that `used` does not count; return the text, or "(no memory)"
 * on failure. */
const char *out_cstr(outbuf *o);

/* Reserve capacity for n more bytes. Return false on failure. */
static inline bool out_reserve(outbuf *o, size_t n)
{
    return (n <= o->capacity - o->used && !o->os) || out_grow(o, n);
}

enum { DIGITS = 20 }; /* maximum digits of a 64-bit number */
char *put_digits(char *to, uint64_t v);

/* Write v in decimal at `to`, which has capacity for DIGITS; return the end. */
static inline char *put_u64(char *to, uint64_t v)
{
    if (v >= 10)
        return put_digits(to, v);
    *to = (char)('0' + v);
    return to + 1;
}

static inline void out_char(outbuf *o, char c)
{
    if (o->used < o->capacity || out_reserve(o, 1))
        o->buf[o->used++] = c;
}

/* Slow path of out_bytes(). */
void out_bytes_slow(outbuf *o, const void *p, size_t n);

static inline void out_bytes(outbuf *o, const void *p, size_t n)
{
    if (!n || n >= o->capacity - o->used) {
        out_bytes_slow(o, p, n);
        return;
    }
    memcpy(o->buf + o->used, p, n);
    o->used += n;
}

static inline void out_text(outbuf *o, const char *s)
{
    out_bytes(o, s, strlen(s));
}

/* ---- hexadecimal digits ---- */

/* Write two small digits for each of n bytes, and a terminator. */
void hex_text(char *out, const void *p, size_t n);
/* Return the value of a digit, or 16 if c is not one. */
unsigned hex_digit(char c);

/* ---- escape text from files for terminals and for JSON ---- */

/* Write control characters, characters that change the text direction, and invalid UTF-8 as \n,
 * \x1b, \u202e. A backslash is doubled, so that different names stay different. */
void out_escaped(outbuf *o, heft_str s);
/* Escape a message or a path: like out_escaped(), but a backslash is not doubled. */
void out_message(outbuf *o, const char *s);
/* Escape a name for a table; an empty name is written as "". */
void out_name(outbuf *o, heft_str s);
/* Write a JSON string with its quotation marks; the same characters are written as \u202e, and
 * invalid UTF-8 becomes U+FFFD. */
void out_json_string(outbuf *o, heft_str s);

static inline heft_str str_of(const char *s)
{
    return (heft_str){ s, __builtin_strlen(s) };
}

static inline bool str_same(heft_str a, heft_str b)
{
    return a.len == b.len && (!a.len || !memcmp(a.ptr, b.ptr, a.len));
}

static inline bool str_begins(heft_str s, const char *with)
{
    size_t len = __builtin_strlen(with);
    return s.len >= len && !memcmp(s.ptr, with, len);
}

/* Order by bytes, as qsort() needs it; a prefix comes first. */
static inline int str_order(heft_str a, heft_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.ptr, b.ptr, len) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

#endif
