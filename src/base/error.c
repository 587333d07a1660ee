/* error.c - formats the message of a heft_error without a C library: bounded, never truncated
 * inside a character. */
#include "base/error.h"

#include "base/text.h"

enum {
    MAX_QUOTED = 60, /* bytes of a name that a message shows */
    CAPACITY = sizeof(((heft_error *)0)->message) - 1
};

typedef struct line {
    char *at;
    size_t left; /* bytes that still fit */
    bool is_full;
} line;

/* Append all of s or nothing; once a string did not fit, drop everything that follows. */
static void put(line *l, const char *s, size_t len)
{
    if (l->is_full || len > l->left) {
        l->is_full = true;
        return;
    }
    for (size_t i = 0; i < len; i++)
        l->at[i] = s[i];
    l->at += len;
    l->left -= len;
}

static void put_hex(line *l, uint64_t v)
{
    char digits[16];
    size_t zeros = 0;
    for (size_t i = 0; i < sizeof v; i++) {
        uint8_t byte = (uint8_t)(v >> (56 - 8 * i));
        heft_hex_text(digits + 2 * i, &byte, 1);
    }
    while (zeros < sizeof digits - 1 && digits[zeros] == '0')
        zeros++;
    put(l, digits + zeros, sizeof digits - zeros);
}

static void put_u64(line *l, uint64_t v)
{
    char digits[20];
    put(l, digits, heft_u64_text(digits, v));
}

static void put_i64(line *l, int64_t v)
{
    uint64_t magnitude = (uint64_t)v;
    if (v < 0) {
        put(l, "-", 1);
        magnitude = 0 - magnitude;
    }
    put_u64(l, magnitude);
}

static void put_escaped(line *l, uint8_t byte)
{
    char text[4] = { '\\', 'x' };
    heft_hex_text(text + 2, &byte, 1);
    put(l, text, sizeof text);
}

/* Return the length of the first character in bytes; 0 if s does not begin with valid UTF-8. */
static size_t char_bytes(const char *s, size_t len)
{
    uint8_t lead = (uint8_t)*s;
    size_t n = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    return n <= len && heft_utf8_valid(s, n) == n ? n : 0;
}

/* Return true for C0 controls, DEL, and C1 controls (U+0080 to U+009F). */
static bool is_control(const char *s, size_t bytes)
{
    return (uint8_t)*s < 0x20 || *s == 0x7F ||
           (bytes == 2 && (uint8_t)s[0] == 0xC2 && (uint8_t)s[1] < 0xA0);
}

static void put_text(line *l, const char *s)
{
    if (!s)
        s = "(none)";
    for (heft_str rest = heft_lit(s); rest.len;) {
        size_t n = char_bytes(rest.ptr, rest.len), bytes = n ? n : 1;
        if (n)
            put(l, rest.ptr, n);
        else
            put_escaped(l, (uint8_t)*rest.ptr);
        rest.ptr += bytes;
        rest.len -= bytes;
    }
}

static void put_quoted(line *l, heft_str s)
{
    put(l, "'", 1);
    for (size_t i = 0; i < s.len;) {
        size_t n = char_bytes(s.ptr + i, s.len - i);
        if (i + (n ? n : 1) > MAX_QUOTED) {
            put(l, "…", sizeof "…" - 1);
            break;
        }
        if (!n || is_control(s.ptr + i, n)) {
            n = n ? n : 1;
            for (size_t b = 0; b < n; b++)
                put_escaped(l, (uint8_t)s.ptr[i + b]);
        } else {
            if (s.ptr[i] == '\'' || s.ptr[i] == '\\')
                put(l, "\\", 1);
            put(l, s.ptr + i, n);
        }
        i += n;
    }
    put(l, "'", 1);
}

static void put_arg(line *l, char kind, va_list *ap)
{
    switch (kind) {
    case 's':
        put_text(l, va_arg(*ap, const char *));
        break;
    case 'q':
        put_quoted(l, va_arg(*ap, heft_str));
        break;
    case 'U':
        put_u64(l, va_arg(*ap, uint64_t));
        break;
    case 'D':
        put_i64(l, va_arg(*ap, int64_t));
        break;
    case 'X':
        put_hex(l, va_arg(*ap, uint64_t));
        break;
    default:
        put(l, &kind, 1);
    }
}

heft_status heft_error_set_list(heft_error *err, heft_status s, uint64_t offset, const char *fmt,
                                va_list *ap)
{
    if (!err)
        return s;
    err->status = s;
    err->os = 0;
    err->offset = offset;
    err->rule = NULL;
    err->expected_bytes = 0;
    err->about = HEFT_ABOUT_NOTHING;
    err->input = 0;
    line l = { .at = err->message, .left = CAPACITY };
    for (heft_str rest = heft_lit(fmt); rest.len;) {
        size_t n = 1;
        if (*rest.ptr != '%') {
            n = char_bytes(rest.ptr, rest.len);
            n = n ? n : 1;
            put(&l, rest.ptr, n);
        } else if (rest.len > 1) {
            put_arg(&l, rest.ptr[1], ap);
            n = 2;
        }
        rest.ptr += n;
        rest.len -= n;
    }
    *l.at = '\0';
    return s;
}

heft_status heft_error_set(heft_error *err, heft_status s, uint64_t offset, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    heft_error_set_list(err, s, offset, fmt, &ap);
    va_end(ap);
    return s;
}

heft_status heft_error_plain(heft_error *err, heft_status s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    heft_error_set_list(err, s, HEFT_NOWHERE, fmt, &ap);
    va_end(ap);
    return s;
}

heft_status heft_error_no_memory(heft_error *err, const char *purpose)
{
    return heft_error_plain(err, HEFT_E_NOMEM, "no memory %s", purpose);
}

heft_status heft_error_rule(heft_error *err, heft_status s, const char *rule)
{
    if (err)
        err->rule = rule;
    return s;
}

/* Return true if a message ends with the name of a file. */
static bool names_file(const char *message, size_t len)
{
    enum { IN = 6 };
    if (!len || message[len - 1] != '\'')
        return false;
    for (size_t i = len - 1; i >= IN; i--)
        if (!memcmp(message + i - IN, ", in '", IN))
            return true;
    return false;
}

heft_status heft_error_in(heft_error *err, heft_status s, heft_str file)
{
    if (!err || err->status != s || !file.len) /* a source may have set none */
        return s;
    size_t used = 0;
    while (used < CAPACITY && err->message[used])
        used++;
    if (names_file(err->message, used)) /* the file where the fact was known */
        return s;
    line l = { .at = err->message + used, .left = CAPACITY - used };
    put(&l, ", in ", sizeof ", in " - 1);
    put_quoted(&l, file);
    *l.at = '\0';
    return s;
}

heft_status heft_error_expect(heft_error *err, heft_status s, uint64_t a, uint64_t b)
{
    if (err && a <= UINT64_MAX - b)
        err->expected_bytes = a + b;
    return s;
}

heft_status heft_error_os(heft_error *err, heft_status s, int os)
{
    if (err)
        err->os = os;
    return s;
}

heft_error *heft_error_begin(heft_error *err, heft_error *own)
{
    err = err ? err : own;
    err->status = HEFT_OK;
    err->os = 0;
    err->offset = HEFT_NOWHERE;
    err->message[0] = '\0';
    err->rule = NULL;
    err->expected_bytes = 0;
    err->about = HEFT_ABOUT_NOTHING;
    err->input = 0;
    return err;
}

heft_status heft_error_end(heft_error *err, heft_status st)
{
    const char *what = st == HEFT_E_NOMEM       ? "out of memory"
                       : st == HEFT_E_IO        ? "reading or writing failed"
                       : st == HEFT_E_CANCELLED ? "stopped"
                                                : "the operation failed";
    if (!st || st == HEFT_AGAIN || (err->status == st && *err->message))
        return st;
    return heft_error_plain(err, st, "%s; no details are available", what);
}

heft_status heft_error_about(heft_error *err, heft_status st, heft_about about)
{
    if (!err || !st)
        return st;
    heft_error_end(err, st);
    if (!err->about)
        err->about = about;
    return st;
}

heft_status heft_error_input(heft_error *err, heft_status st, uint32_t input)
{
    if (err && st)
        err->input = input;
    return st;
}
