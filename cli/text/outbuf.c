#include "text/outbuf.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Return the length of the UTF-8 sequence at p and store the code point, or return 0 if it is
 * invalid. */
static size_t utf8_at(const uint8_t *p, size_t n, uint32_t *code)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t len = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    if (!len || len > n || p[0] > 0xF4)
        return 0;
    uint32_t c = len == 1 ? p[0] : p[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3F);
    }
    if (c < least[len] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return 0;
    *code = c;
    return len;
}

/* Return true for characters that move the cursor, hide text or change the text direction. */
static bool is_harmful(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

static void out_code(outbuf *o, uint32_t c)
{
    static const char letters[] = "\tt\nn\rr";
    for (size_t i = 0; i < sizeof letters - 1; i += 2)
        if (c == (uint8_t)letters[i]) {
            out_char(o, '\\');
            out_char(o, letters[i + 1]);
            return;
        }
    out_format(o, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
}

enum { STEP = sizeof(uint64_t) };

/* Return true if eight bytes are printable ASCII without a backslash or DEL. */
static bool is_plain(const uint8_t *p)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones * 0x80;
    uint64_t eight;
    memcpy(&eight, p, sizeof eight);
    uint64_t backslash = eight ^ ones * '\\', del = eight ^ ones * 0x7F;
    return !(((backslash - ones) | (del - ones) | (eight - ones * ' ') | eight) & tops);
}

static void escape(outbuf *o, heft_str s, bool backslash)
{
    const uint8_t *p = (const uint8_t *)s.ptr;
    size_t from = 0, i = 0;
    while (s.len - i >= STEP && is_plain(p + i)) /* most names end here */
        i += STEP;
    /* the last step overlaps */
    if (s.len >= STEP && s.len - i < STEP && is_plain(p + s.len - STEP))
        i = s.len;
    while (i < s.len) {
        uint32_t c = p[i];
        size_t len = 1;
        if (c >= 0x80)
            len = utf8_at(p + i, s.len - i, &c);
        if (len && !is_harmful(c) && !(backslash && c == '\\')) {
            i += len;
            continue;
        }
        out_bytes(o, s.ptr + from, i - from);
        if (c == '\\')
            out_text(o, "\\\\");
        else
            out_code(o, len ? c : p[i]);
        i += len ? len : 1;
        from = i;
    }
    if (from < s.len)
        out_bytes(o, s.ptr + from, s.len - from);
}

void out_escaped(outbuf *o, heft_str s)
{
    escape(o, s, true);
}

void out_message(outbuf *o, const char *s)
{
    escape(o, (heft_str){ s, strlen(s) }, false);
}

void out_name(outbuf *o, heft_str s)
{
    if (s.len)
        escape(o, s, true);
    else
        out_text(o, "\"\"");
}

static void out_json_escape(outbuf *o, uint32_t c)
{
    switch (c) {
    case '\n':
        out_text(o, "\\n");
        break;
    case '\t':
        out_text(o, "\\t");
        break;
    case '"':
    case '\\':
        out_char(o, '\\');
        out_char(o, (char)c);
        break;
    default:
        out_format(o, "\\u%04x", c);
    }
}

void out_json_string(outbuf *o, heft_str s)
{
    const uint8_t *p = (const uint8_t *)s.ptr;
    size_t from = 0;
    out_char(o, '"');
    for (size_t i = 0; i < s.len;) {
        uint32_t c = p[i];
        size_t len = c < 0x80 ? 1 : utf8_at(p + i, s.len - i, &c);
        if (len && c != '"' && c != '\\' && !is_harmful(c)) {
            i += len;
            continue;
        }
        out_bytes(o, s.ptr + from, i - from);
        if (len)
            out_json_escape(o, c);
        else
            out_text(o, "\xEF\xBF\xBD");
        i += len ? len : 1;
        from = i;
    }
    out_bytes(o, s.ptr + from, s.len - from);
    out_char(o, '"');
}

static const char hex_digits[] = "0123456789abcdef";

void hex_text(char *out, const void *p, size_t n)
{
    const uint8_t *bytes = p;
    for (size_t i = 0; i < n; i++) {
        *out++ = hex_digits[bytes[i] >> 4];
        *out++ = hex_digits[bytes[i] & 15];
    }
    *out = '\0';
}

unsigned hex_digit(char c)
{
    const char *found = c ? strchr(hex_digits, c >= 'A' && c <= 'F' ? c | 0x20 : c) : NULL;
    return found ? (unsigned)(found - hex_digits) : 16;
}

enum { BUFFER = 256 << 10, DIRECT = 64 << 10 }; /* DIRECT: writes of this size bypass the buffer */

static bool fail(outbuf *o, int os)
{
    o->os = os; /* buffered text is kept: callers rely on `used` */
    return false;
}

static bool write_all(outbuf *o, const char *p, size_t n)
{
    int os = o->write && n ? o->write(o->ctx, p, n) : 0;
    if (os)
        return fail(o, os);
    while (n && !o->write) {
        ssize_t done = write(o->fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return fail(o, errno);
        p += done;
        n -= (size_t)done;
    }
    return true;
}

static bool grow(outbuf *o, size_t need)
{
    size_t capacity = o->capacity ? o->capacity : 256;
    if (o->is_borrowed)
        return fail(o, ENOMEM);
    while (capacity < need)
        capacity *= 2;
    char *buf = realloc(o->buf, capacity);
    if (!buf)
        return fail(o, ENOMEM);
    o->buf = buf;
    o->capacity = capacity;
    return true;
}

void out_open(outbuf *o, int fd)
{
    *o = (outbuf){ .fd = fd };
}

void out_open_fixed(outbuf *o, int fd, char *buf, size_t capacity)
{
    *o = (outbuf){ .buf = buf, .capacity = capacity, .fd = fd, .is_borrowed = true };
}

void out_free(outbuf *o)
{
    if (!o->is_borrowed)
        free(o->buf);
    *o = (outbuf){ .fd = -1 };
}

bool out_flush(outbuf *o)
{
    if (o->os)
        return false;
    if (o->fd < 0 || !o->used)
        return true;
    size_t used = o->used;
    o->used = 0;
    return write_all(o, o->buf, used);
}

bool out_grow(outbuf *o, size_t n)
{
    if (o->os)
        return false;
    if (o->fd < 0)
        return grow(o, o->used + n);
    if (!o->capacity && !grow(o, BUFFER))
        return false;
    return out_flush(o) && (n <= o->capacity || grow(o, n));
}

void out_bytes_slow(outbuf *o, const void *p, size_t n)
{
    size_t direct = o->is_borrowed && o->capacity < DIRECT ? o->capacity : DIRECT;
    if (o->fd >= 0 && n >= direct) {
        if (out_flush(o))
            (void)write_all(o, p, n);
        return;
    }
    if (!n || !out_reserve(o, n))
        return;
    memcpy(o->buf + o->used, p, n);
    o->used += n;
}

char *put_digits(char *to, uint64_t v)
{
    size_t digits = 1;
    for (uint64_t rest = v; rest >= 10; rest /= 10)
        digits++;
    for (size_t at = digits; at--; v /= 10)
        to[at] = (char)('0' + v % 10);
    return to + digits;
}

void out_u64(outbuf *o, uint64_t v)
{
    if (out_reserve(o, DIGITS))
        o->used = (size_t)(put_u64(o->buf + o->used, v) - o->buf);
}

void out_i64(outbuf *o, int64_t v)
{
    if (v < 0)
        out_char(o, '-');
    out_u64(o, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void out_fill(outbuf *o, char c, size_t n)
{
    if (!n || !out_reserve(o, n))
        return;
    memset(o->buf + o->used, c, n);
    o->used += n;
}

void out_vformat(outbuf *o, const char *format, va_list args)
{
    va_list args_copy;
    va_copy(args_copy, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n >= 0 && out_reserve(o, (size_t)n + 1)) {
        vsnprintf(o->buf + o->used, (size_t)n + 1, format, args_copy);
        o->used += (size_t)n;
    }
    va_end(args_copy);
}

void out_format(outbuf *o, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    out_vformat(o, format, args);
    va_end(args);
}

void out_hex(outbuf *o, const void *p, size_t n)
{
    const uint8_t *bytes = p;
    for (size_t i = 0; i < n; i++) {
        char two[3];
        hex_text(two, bytes + i, 1);
        out_bytes(o, two, 2);
    }
}

void out_size(outbuf *o, uint64_t bytes)
{
    static const char units[] = "KMGTPE";
    if (bytes < 1024) {
        out_u64(o, bytes);
        out_char(o, ' ');
        out_char(o, 'B');
        return;
    }
    size_t unit = 0;
    for (; unit < 5 && bytes >> (10 * unit + 20); unit++)
        continue;
    uint64_t scale = (uint64_t)1 << (10 * unit + 10);
    uint64_t tenths = bytes / scale * 10 + (bytes % scale / (scale / 1024) * 10 + 512) / 1024;
    if (tenths >= 10240 && unit < 5) {
        tenths = 10;
        unit++;
    }
    out_u64(o, tenths / 10);
    out_char(o, '.');
    out_u64(o, tenths % 10);
    out_char(o, ' ');
    out_char(o, units[unit]);
    out_text(o, "iB");
}

void out_count(outbuf *o, uint64_t n)
{
    static const char units[] = "KMBT";
    double v = (double)n;
    size_t unit = 0;
    if (n < 1000) {
        out_u64(o, n);
        return;
    }
    for (v /= 1000; v >= 999.5 && unit < sizeof units - 2; unit++)
        v /= 1000;
    out_format(o, "%.*f %c", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, units[unit]);
}

const char *out_cstr(outbuf *o)
{
    if (!out_reserve(o, 1))
        return "(no memory)";
    o->buf[o->used] = 0;
    return o->buf;
}
