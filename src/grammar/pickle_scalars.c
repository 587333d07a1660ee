/* pickle_scalars.c - the opcodes that push strings and numbers. */
#include "base/checked_math.h"
#include "base/text.h"
#include "grammar/pickle_machine.h"

/* ---- strings ---- */

/* Take n bytes; empty after a failure. */
static heft_str take(heft_pickle *p, uint64_t n)
{
    const uint8_t *s = heft_cur_take(&p->c, n);
    return (heft_str){ s ? (const char *)s : "", s ? (size_t)n : 0 };
}

heft_str heft_pickle_take_line(heft_pickle *p)
{
    enum { STEP = 256 };
    heft_cur *c = &p->c;
    const uint8_t *end = c->p;
    while (end < c->end && *end != '\n')
        end++;
    if (end == c->end && !c->st) {
        uint64_t limit = heft_cur_left(c), more = (uint64_t)(c->end - c->p) + STEP;
        if ((uint64_t)(c->end - c->p) == limit) {
            heft_pickle_fail(p, HEFT_E_FORMAT, "%s: a line does not end", c->what);
            return (heft_str){ "", 0 };
        }
        heft_cur_underrun(c, more < limit ? more : limit);
    }
    heft_str line = take(p, (uint64_t)(end - c->p));
    heft_cur_take(c, 1);
    return line;
}

static void push_string(heft_pickle *p, heft_pickle_kind kind, heft_str s)
{
    heft_pickle_value v = heft_pickle_value_of(kind);
    v.as.s = s;
    heft_pickle_push(p, v);
}

/* A Python 2 string may contain any bytes. */
static void push_old_text(heft_pickle *p, heft_str s)
{
    push_string(p, heft_str_is_utf8(s) ? HEFT_PICKLE_TEXT : HEFT_PICKLE_BYTES, s);
}

bool heft_pickle_is_utf8(heft_pickle *p, heft_str s)
{
    size_t valid = heft_utf8_valid(s.ptr, s.len);
    if (valid < s.len)
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: a text is not UTF-8: byte 0x%X", p->c.what,
                         (uint64_t)(uint8_t)s.ptr[valid]);
    return valid == s.len;
}

uint64_t heft_pickle_take_number(heft_pickle *p, uint32_t bytes)
{
    const uint8_t *s = heft_cur_take(&p->c, bytes);
    uint64_t n = 0;
    while (s && bytes--)
        n = n << 8 | s[bytes];
    return n;
}

void heft_pickle_op_text(heft_pickle *p, uint32_t length_bytes)
{
    heft_str s = take(p, heft_pickle_take_number(p, length_bytes));
    if (heft_pickle_is_utf8(p, s))
        push_string(p, HEFT_PICKLE_TEXT, s);
}

void heft_pickle_op_old_text(heft_pickle *p, uint32_t length_bytes)
{
    push_old_text(p, take(p, heft_pickle_take_number(p, length_bytes)));
}

void heft_pickle_op_bytes(heft_pickle *p, uint32_t length_bytes)
{
    push_string(p, HEFT_PICKLE_BYTES, take(p, heft_pickle_take_number(p, length_bytes)));
}

/* Return the number with `digits` hexadecimal digits, at most 8, at s; a negative number if
 * invalid. */
static int32_t hex_number(const char *s, const char *end, int digits)
{
    uint32_t n;
    return end - s < digits || !heft_hex_number(&n, s, (size_t)digits) ? -1 : (int32_t)n;
}

/* Latin-1 with \uXXXX and \UXXXXXXXX.  An escape is at least as long as the UTF-8 of the character;
 * a Latin-1 byte takes up to two bytes. */
void heft_pickle_op_escaped_text(heft_pickle *p, uint32_t arg)
{
    (void)arg;
    heft_str line = heft_pickle_take_line(p);
    const char *s = line.ptr, *end = s + line.len;
    if (p->st || p->c.st)
        return;
    char *start = heft_arena_alloc(p->arena, 2 * line.len + 1, 1), *to = start;
    if (!start) {
        heft_pickle_no_memory(p);
        return;
    }
    while (s < end) {
        int digits = *s != '\\' || end - s < 2 ? 0 : s[1] == 'u' ? 4 : s[1] == 'U' ? 8 : 0;
        int32_t c = digits ? hex_number(s + 2, end, digits) : (uint8_t)*s;
        if (c < 0 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) {
            heft_pickle_fail(p, HEFT_E_FORMAT, "%s: an escape in a text is not a character",
                             p->c.what);
            return;
        }
        to += heft_utf8_put(to, (uint32_t)c);
        s += digits ? digits + 2 : 1;
    }
    push_string(p, HEFT_PICKLE_TEXT, (heft_str){ start, (size_t)(to - start) });
}

/* Decode a character of Python's repr of a str to *to; return the end, or NULL if invalid. */
static const char *unquote(char *to, const char *s, const char *end)
{
    static const char from[] = "\\'\"nrtabfv", into[] = "\\'\"\n\r\t\a\b\f\v";
    if (*s != '\\') {
        *to = *s;
        return s + 1;
    }
    if (++s == end)
        return NULL;
    for (size_t i = 0; i + 1 < sizeof from; i++)
        if (*s == from[i]) {
            *to = into[i];
            return s + 1;
        }
    int32_t c = *s == 'x' ? hex_number(s + 1, end, 2) : -1;
    *to = (char)c;
    return c < 0 ? NULL : s + 3;
}

/* 'text' or "text" with escapes. */
void heft_pickle_op_quoted(heft_pickle *p, uint32_t arg)
{
    (void)arg;
    heft_str line = heft_pickle_take_line(p);
    if (p->st || p->c.st)
        return;
    const char *s = line.ptr, *end = line.len ? s + line.len - 1 : s;
    if (line.len < 2 || (*s != '\'' && *s != '"') || *end != *s) {
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: a text has no quotes", p->c.what);
        return;
    }
    char *start = heft_arena_alloc(p->arena, line.len, 1), *to = start;
    if (!start) {
        heft_pickle_no_memory(p);
        return;
    }
    for (s++; s && s < end;)
        s = unquote(to++, s, end);
    if (!s)
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: a text has an unknown escape", p->c.what);
    else
        push_old_text(p, (heft_str){ start, (size_t)(to - start) });
}

/* ---- numbers ---- */

static void push_int(heft_pickle *p, int64_t i)
{
    heft_pickle_value v = heft_pickle_value_of(HEFT_PICKLE_INT);
    v.as.i = i;
    heft_pickle_push(p, v);
}

void heft_pickle_op_shared(heft_pickle *p, uint32_t kind)
{
    if (kind == HEFT_PICKLE_NONE)
        heft_pickle_push_shared(p, &p->none, heft_pickle_value_of(HEFT_PICKLE_NONE));
    else
        heft_pickle_push_shared(p, &p->empty_tuple, heft_pickle_value_of(HEFT_PICKLE_TUPLE));
}

void heft_pickle_op_bool(heft_pickle *p, uint32_t is_true)
{
    heft_pickle_value v = heft_pickle_value_of(HEFT_PICKLE_BOOL);
    v.as.b = is_true;
    heft_pickle_push_shared(p, &p->truth[is_true], v);
}

/* A four-byte integer is signed; shorter integers are unsigned. */
void heft_pickle_op_int(heft_pickle *p, uint32_t bytes)
{
    uint64_t n = heft_pickle_take_number(p, bytes);
    push_int(p, bytes == 4 ? (int64_t)(int32_t)(uint32_t)n : (int64_t)n);
}

void heft_pickle_op_long(heft_pickle *p, uint32_t length_bytes)
{
    uint64_t len = heft_pickle_take_number(p, length_bytes), n = 0;
    if (length_bytes == 4 && len > INT32_MAX)
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: an integer has a negative length", p->c.what);
    heft_str s = take(p, p->st ? 0 : len);
    if (s.len > sizeof n) {
        push_string(p, HEFT_PICKLE_BIG, s);
        return;
    }
    bool is_negative = s.len && (uint8_t)s.ptr[s.len - 1] >> 7;
    n = is_negative ? UINT64_MAX : 0;
    for (size_t i = s.len; i--;)
        n = n << 8 | (uint8_t)s.ptr[i];
    push_int(p, (int64_t)n);
}

bool heft_pickle_decimal(int64_t *out, heft_str s)
{
    bool is_negative = s.len && *s.ptr == '-';
    uint64_t n = 0, limit = (uint64_t)INT64_MAX + is_negative;
    for (size_t i = is_negative; i < s.len; i++) {
        uint32_t digit = (uint32_t)(uint8_t)s.ptr[i] - '0';
        if (digit > 9 || !heft_mul(&n, n, 10) || !heft_add(&n, n, digit) || n > limit)
            return false;
    }
    *out = is_negative ? (int64_t)(0 - n) : (int64_t)n;
    return s.len > is_negative;
}

/* I, L and F: decimal numbers; I also encodes True and False. */
void heft_pickle_op_decimal(heft_pickle *p, uint32_t letter)
{
    heft_str s = heft_pickle_take_line(p);
    int64_t i;
    if (letter == 'I' && (heft_str_is(s, "00") || heft_str_is(s, "01"))) {
        heft_pickle_op_bool(p, s.ptr[1] == '1');
        return;
    }
    if (letter == 'L' && s.len && s.ptr[s.len - 1] == 'L')
        s.len--;
    if (letter != 'F' && heft_pickle_decimal(&i, s))
        push_int(p, i);
    else if (heft_is_ascii(s.ptr, s.len) && s.len)
        push_string(p, HEFT_PICKLE_DECIMAL, s);
    else if (!p->c.st)
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: a decimal number is invalid", p->c.what);
}

/* IEEE 754, big-endian. */
void heft_pickle_op_float(heft_pickle *p, uint32_t arg)
{
    (void)arg;
    heft_str s = take(p, 8);
    heft_pickle_value v = heft_pickle_value_of(HEFT_PICKLE_FLOAT);
    uint64_t bits = 0;
    for (size_t i = 0; i < s.len; i++)
        bits = bits << 8 | (uint8_t)s.ptr[i];
    memcpy(&v.as.f, &bits, sizeof bits);
    heft_pickle_push(p, v);
}
