/* text.c - strings with a length, UTF-8, decimal and hexadecimal digits, shell patterns. */
#include "base/text.h"

#include <string.h>

heft_str heft_str_from(const char *text)
{
    size_t len = 0;
    while (text[len])
        len++;
    return (heft_str){ text, len };
}

bool heft_str_eq(heft_str a, heft_str b)
{
    return a.len == b.len && (!a.len || !memcmp(a.ptr, b.ptr, a.len));
}

bool heft_str_is(heft_str a, const char *b)
{
    /* Most texts differ in the first characters, so the length of b is not counted first. */
    size_t i = 0;
    while (i < a.len && b[i] && b[i] == a.ptr[i])
        i++;
    return i == a.len && !b[i];
}

bool heft_str_is_any_case(heft_str a, const char *small)
{
    size_t i = 0;
    for (; i < a.len && small[i]; i++) {
        char c = a.ptr[i];
        if ((c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c) != small[i])
            return false;
    }
    return i == a.len && !small[i];
}

bool heft_str_begins(heft_str s, const char *with)
{
    heft_str w = heft_lit(with);
    return s.len >= w.len && heft_str_eq((heft_str){ s.ptr, w.len }, w);
}

bool heft_str_ends(heft_str s, const char *with)
{
    heft_str w = heft_lit(with);
    return s.len >= w.len && heft_str_eq((heft_str){ s.ptr + (s.len - w.len), w.len }, w);
}

uint32_t heft_str_fnv1a(heft_str s)
{
    uint32_t h = 0x811C9DC5;
    for (size_t i = 0; i < s.len; i++)
        h = (h ^ (uint8_t)s.ptr[i]) * 0x01000193;
    return h;
}

heft_str heft_str_next_word(heft_str *list)
{
    heft_str word = { list->ptr, 0 };
    while (word.len < list->len && word.ptr[word.len] != ' ')
        word.len++;
    size_t used = word.len + (word.len < list->len);
    *list = (heft_str){ list->ptr + used, list->len - used };
    return word;
}

bool heft_str_has_word(heft_str list, heft_str word)
{
    while (list.len)
        if (heft_str_eq(heft_str_next_word(&list), word) && word.len)
            return true;
    return false;
}

int heft_str_order(heft_str a, heft_str b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    int order = shorter ? memcmp(a.ptr, b.ptr, shorter) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static bool has_non_ascii(const uint8_t *p)
{
    uint64_t eight;
    memcpy(&eight, p, sizeof eight);
    return eight & UINT64_C(0x8080808080808080);
}

bool heft_str_has_nul(heft_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!s.ptr[i])
            return true;
    return false;
}

/* Return the length of the ASCII prefix of p. */
static size_t ascii_bytes(const uint8_t *p, size_t len)
{
    size_t i = 0;
    while (len - i >= 8 && !has_non_ascii(p + i))
        i += 8;
    if (i && len - i < 8 && !has_non_ascii(p + len - 8))
        return len;
    while (i < len && p[i] < 0x80)
        i++;
    return i;
}

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Return the length of the well-formed multi-byte sequence that p begins with, or 0.  The range of
 * the second byte excludes overlong forms, surrogates and code points past U+10FFFF (RFC 3629
 * §4). */
static size_t sequence_bytes(const uint8_t *p, size_t len)
{
    uint8_t a = p[0];
    if (a < 0xC2 || a > 0xF4 || len < 2)
        return 0;
    if (a < 0xE0)
        return is_continuation(p[1]) ? 2 : 0;
    uint8_t low = a == 0xE0 ? 0xA0 : a == 0xF0 ? 0x90 : 0x80;
    uint8_t high = a == 0xED ? 0x9F : a == 0xF4 ? 0x8F : 0xBF;
    if (p[1] < low || p[1] > high || len < 3 || !is_continuation(p[2]))
        return 0;
    if (a < 0xF0)
        return 3;
    return len >= 4 && is_continuation(p[3]) ? 4 : 0;
}

size_t heft_utf8_valid(const void *p, size_t len)
{
    const uint8_t *s = p;
    size_t i = 0;
    while (i < len) {
        i += ascii_bytes(s + i, len - i);
        size_t n = 0;
        while (i < len && s[i] >= 0x80 && (n = sequence_bytes(s + i, len - i)) != 0)
            i += n;
        if (i < len && s[i] >= 0x80)
            break;
    }
    return i;
}

bool heft_is_ascii(const void *p, size_t len)
{
    return ascii_bytes(p, len) == len;
}

/* Divide *v by 10,000 and return the remainder, in steps of 16 bits: 32-bit targets call a helper
 * function for a 64-bit division. */
static uint32_t split_10000(uint64_t *v)
{
    uint64_t quotient = 0;
    uint32_t rest = 0;
    for (unsigned shift = 64; shift;) {
        shift -= 16;
        uint32_t part = rest << 16 | (uint32_t)(*v >> shift & 0xFFFF);
        quotient |= (uint64_t)(part / 10000) << shift;
        rest = part % 10000;
    }
    *v = quotient;
    return rest;
}

const uint8_t *heft_str_seek(const uint8_t *p, const uint8_t *end, const void *what, size_t len)
{
    for (; (size_t)(end - p) >= len; p++)
        if (*p == *(const uint8_t *)what && !memcmp(p, what, len))
            return p;
    return NULL;
}

size_t heft_utf8_put(char *to, uint32_t code)
{
    static const uint8_t leads[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n; --i; code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)(leads[n] | code);
    return n;
}

uint32_t heft_hex_digit(char c)
{
    uint32_t digit = (uint32_t)(uint8_t)c - '0', letter = (uint32_t)((uint8_t)c | 0x20) - 'a';
    return digit < 10 ? digit : letter < 6 ? letter + 10 : 16;
}

bool heft_hex_number(uint32_t *out, const char *p, size_t digits)
{
    uint32_t bad = 0;
    *out = 0;
    for (size_t i = 0; i < digits; i++) {
        uint32_t digit = heft_hex_digit(p[i]);
        bad |= digit & 16;
        *out = *out << 4 | (digit & 15);
    }
    return !bad;
}

bool heft_hex_read(uint8_t *out, size_t len, heft_str digits)
{
    bool ok = digits.len % 2 == 0 && digits.len / 2 == len;
    for (size_t i = 0; i < len && ok; i++) {
        uint32_t high = heft_hex_digit(digits.ptr[2 * i]);
        uint32_t low = heft_hex_digit(digits.ptr[2 * i + 1]);
        ok = high < 16 && low < 16;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return ok;
}

static void put_hex(char *out, const uint8_t *bytes, size_t len, const char *digits)
{
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
}

void heft_hex_text(char *out, const uint8_t *bytes, size_t len)
{
    put_hex(out, bytes, len, "0123456789abcdef");
}

void heft_hex_capitals(char *out, const uint8_t *bytes, size_t len)
{
    put_hex(out, bytes, len, "0123456789ABCDEF");
}

size_t heft_u64_text(char out[20], uint64_t v)
{
    char digits[20];
    size_t at = sizeof digits;
    while (v > UINT32_MAX) {
        uint32_t four = split_10000(&v);
        for (unsigned i = 0; i < 4; i++, four /= 10)
            digits[--at] = (char)('0' + four % 10);
    }
    uint32_t low = (uint32_t)v;
    do {
        digits[--at] = (char)('0' + low % 10);
        low /= 10;
    } while (low);
    memcpy(out, digits + at, sizeof digits - at);
    return sizeof digits - at;
}

/* Return a character of a set, which a backslash may precede, and advance *i past the character. */
static uint8_t set_char(heft_str pattern, size_t *i)
{
    if (pattern.ptr[*i] == '\\' && *i + 1 < pattern.len)
        ++*i;
    return (uint8_t)pattern.ptr[(*i)++];
}

/* Return true if the set that begins with '[' at pattern[*i] contains c, and advance *i past the
 * ']'.  Without a ']' the '[' is an ordinary character. */
static bool set_matches(heft_str pattern, size_t *i, uint8_t c)
{
    size_t at = *i + 1;
    bool is_negated = at < pattern.len && pattern.ptr[at] == '!', is_in = false;
    at += is_negated;
    /* A ']' directly after the '[' or '[!' is a member of the set. */
    for (size_t first = at; at < pattern.len && (pattern.ptr[at] != ']' || at == first);) {
        uint8_t low = set_char(pattern, &at), high = low;
        if (at + 1 < pattern.len && pattern.ptr[at] == '-' && pattern.ptr[at + 1] != ']') {
            at++;
            high = set_char(pattern, &at);
        }
        is_in = is_in || (low <= c && c <= high);
    }
    if (at >= pattern.len) {
        ++*i;
        return c == '[';
    }
    *i = at + 1;
    return is_in != is_negated;
}

/* Return true if the pattern element at *i, which is not a star, matches c; advance *i past the
 * element. */
static bool one_matches(heft_str pattern, size_t *i, uint8_t c)
{
    switch (pattern.ptr[*i]) {
    case '?':
        ++*i;
        return true;
    case '[':
        return set_matches(pattern, i, c);
    default:
        return set_char(pattern, i) == c;
    }
}

bool heft_glob(heft_str pattern, heft_str text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, resume = 0;
    while (t < text.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = ++p;
            resume = t;
            continue;
        }
        if (p < pattern.len && one_matches(pattern, &p, (uint8_t)text.ptr[t])) {
            t++;
            continue;
        }
        if (star == SIZE_MAX)
            return false;
        /* Let the last star match one more byte; earlier stars need no retry. */
        p = star;
        t = ++resume;
    }
    while (p < pattern.len && pattern.ptr[p] == '*')
        p++;
    return p == pattern.len;
}
