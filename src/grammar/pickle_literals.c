/* pickle_literals.c - the texts and numbers of a pickle's opcodes, read as Python reads them. */
#include "base/checked_math.h"
#include "grammar/pickle_trace.h"

void heft_trace_push_text(heft_trace *x, heft_str s)
{
    bool fits = s.len < UINT32_MAX; /* a longer text is not a name */
    heft_trace_push(x, (heft_trace_value){ .text = s.ptr,
                                           .len = fits ? (uint32_t)s.len : 0,
                                           .kind = fits ? HEFT_TRACE_TEXT : HEFT_TRACE_UNKNOWN });
}

static bool has_escapes(heft_str s)
{
    const uint8_t *p = (const uint8_t *)s.ptr;
    return s.len && heft_str_seek(p, p + s.len, "\\", 1);
}

/* Read `digits` hexadecimal digits; return false for other text. */
static bool read_hex(uint32_t *out, heft_str s, size_t at, size_t digits)
{
    return s.len - at >= digits && heft_hex_number(out, s.ptr + at, digits);
}

/* ---- texts with escapes ---- */

/* Decode the escape after a backslash at s[*at]; advance *at, and write to out, one byte for each
 * byte read at most.  Return the number of bytes, or -1 if Python fails. */
typedef int decode_fn(char *out, heft_str s, size_t *at);

/* The escapes of bytes in Python.  Others keep the backslash. */
static int decode_byte_escape(char *out, heft_str s, size_t *at)
{
    static const char letters[] = "\\'\"bftnrva", bytes[] = "\\'\"\b\f\t\n\r\v\a";
    uint32_t code = 0;
    if (*at == s.len)
        return -1;
    char c = s.ptr[(*at)++];
    for (size_t i = 0; i < sizeof letters - 1; i++)
        if (c == letters[i]) {
            *out = bytes[i];
            return 1;
        }
    if (c == 'x') {
        if (!read_hex(&code, s, *at, 2))
            return -1;
        *at += 2;
    } else if (c >= '0' && c <= '7') {
        code = (uint32_t)(c - '0');
        for (int i = 0; i < 2 && *at < s.len && s.ptr[*at] >= '0' && s.ptr[*at] <= '7'; i++)
            code = code << 3 | (uint32_t)(s.ptr[(*at)++] - '0');
    } else {
        out[0] = '\\';
        out[1] = c;
        return 2;
    }
    *out = (char)code;
    return 1;
}

/* The escapes of UNICODE: "\uXXXX" and "\UXXXXXXXX".  Others are no escapes. */
static int decode_unicode_escape(char *out, heft_str s, size_t *at)
{
    uint32_t code = 0;
    *out = '\\';
    if (*at == s.len)
        return 1;
    char c = s.ptr[(*at)++];
    size_t digits = c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (!digits) {
        out[1] = c;
        return 2;
    }
    if (!read_hex(&code, s, *at, digits) || code > 0x10FFFF)
        return -1;
    *at += digits;
    return (int)heft_utf8_put(out, code);
}

static void push_decoded(heft_trace *x, heft_str s, decode_fn *decode)
{
    char *out = has_escapes(s) ? heft_arena_alloc(&x->texts, s.len, 1) : NULL;
    size_t len = 0;
    if (!has_escapes(s)) {
        heft_trace_push_text(x, s);
        return;
    }
    if (!out) {
        x->is_out_of_memory = true;
        return;
    }
    for (size_t at = 0; at < s.len;) {
        char c = s.ptr[at++];
        int n = 1;
        if (c == '\\')
            n = decode(out + len, s, &at);
        else
            out[len] = c;
        if (n < 0) {
            heft_trace_break(x);
            return;
        }
        len += (size_t)n;
    }
    heft_trace_push_text(x, (heft_str){ out, len });
}

void heft_trace_push_unicode(heft_trace *x, heft_str s)
{
    push_decoded(x, s, decode_unicode_escape);
}

void heft_trace_push_quoted(heft_trace *x, heft_str s)
{
    bool is_quoted = s.len >= 2 && (s.ptr[0] == '\'' || s.ptr[0] == '"') &&
                     s.ptr[0] == s.ptr[s.len - 1];
    if (is_quoted)
        push_decoded(x, (heft_str){ s.ptr + 1, s.len - 2 }, decode_byte_escape);
    else
        heft_trace_break(x);
}

/* ---- numbers ---- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Remove spaces at both ends, and a sign. */
static heft_str trim(heft_str s, bool *is_negative)
{
    while (s.len && is_space(*s.ptr))
        s = (heft_str){ s.ptr + 1, s.len - 1 };
    while (s.len && is_space(s.ptr[s.len - 1]))
        s.len--;
    *is_negative = s.len && *s.ptr == '-';
    return s.len && (*s.ptr == '-' || *s.ptr == '+') ? (heft_str){ s.ptr + 1, s.len - 1 } : s;
}

/* Read decimal digits, between which Python allows underscores, as far as 64 bits go; return false
 * for other texts. */
static bool read_digits(uint64_t *out, heft_str s)
{
    *out = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '_' && i)
            continue;
        if (!is_digit(s.ptr[i]))
            return false;
        if (!heft_mul(out, *out, 10) || !heft_add(out, *out, (uint64_t)(s.ptr[i] - '0')))
            *out = UINT64_MAX;
    }
    return s.len;
}

/* Python hands the line to functions of C, which end at a NUL. */
static heft_str before_nul(heft_str line)
{
    size_t len = 0;
    while (len < line.len && line.ptr[len])
        len++;
    return (heft_str){ line.ptr, len };
}

bool heft_trace_line_number(uint64_t *out, heft_str line)
{
    bool is_negative;
    return read_digits(out, trim(before_nul(line), &is_negative)) && (!is_negative || !*out);
}

static bool begins_word(heft_str s, const char *word)
{
    for (size_t i = 0; word[i]; i++)
        if (i == s.len || (s.ptr[i] | 0x20) != word[i])
            return false;
    return true;
}

/* Numbers are in any base: only the first letter decides whether Python may go on.  A line that
 * begins with a NUL is the number 0. */
void heft_trace_push_digits(heft_trace *x, heft_str s, bool is_float)
{
    bool is_negative;
    heft_str digits = trim(before_nul(s), &is_negative);
    bool is_nul = !is_float && s.len && !*s.ptr;
    bool is_number = digits.len &&
                     (is_digit(*digits.ptr) ||
                      (is_float && (*digits.ptr == '.' || begins_word(digits, "inf") ||
                                    begins_word(digits, "nan"))));
    if (!is_number && !is_nul) {
        heft_trace_break(x);
        return;
    }
    if (digits.len > 1 && digits.ptr[digits.len - 1] == 'L')
        digits.len--;
    uint64_t n = 0;
    bool is_octal = digits.len > 1 && *digits.ptr == '0';
    bool is_small = !is_float &&
                    (is_nul || (read_digits(&n, digits) && n <= INT64_MAX && !is_octal));
    heft_trace_push(x,
                    (heft_trace_value){ .number = !is_small     ? 0
                                                  : is_negative ? -(int64_t)n
                                                                : (int64_t)n,
                                        .kind = is_small ? HEFT_TRACE_NUMBER : HEFT_TRACE_PLAIN });
}

uint64_t heft_trace_unsigned(heft_str bytes)
{
    uint64_t n = 0;
    for (size_t i = bytes.len; i--;)
        n = n << 8 | (uint8_t)bytes.ptr[i];
    return n;
}

void heft_trace_push_signed(heft_trace *x, heft_str bytes)
{
    enum { MOST = 8 };
    bool is_negative = bytes.len && bytes.ptr[bytes.len - 1] & 0x80;
    uint64_t n = bytes.len <= MOST ? heft_trace_unsigned(bytes) : 0;
    if (is_negative && bytes.len < MOST)
        n |= UINT64_MAX << 8 * bytes.len;
    heft_trace_push(
        x, (heft_trace_value){ .number = (int64_t)n,
                               .kind = bytes.len <= MOST ? HEFT_TRACE_NUMBER : HEFT_TRACE_PLAIN });
}
