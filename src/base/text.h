/* text.h - strings with a length, UTF-8, and numbers as text, without a libc. */
#ifndef HEFT_TEXT_H
#define HEFT_TEXT_H
#include <string.h>

#include <heft/heft.h>

static inline heft_str heft_lit(const char *text)
{
    return heft_str_from(text);
}
bool heft_str_eq(heft_str a, heft_str b);
bool heft_str_is(heft_str a, const char *b);
bool heft_str_begins(heft_str s, const char *with);
bool heft_str_ends(heft_str s, const char *with);
/* By bytes, a shorter one before what it begins: below, equal to or above 0. */
int heft_str_order(heft_str a, heft_str b);
uint32_t heft_str_fnv1a(heft_str s); /* FNV-1a, 32 bits: no hash for names of strangers */
bool heft_str_has_nul(heft_str s);
/* Length of the longest valid prefix: len when all of it is UTF-8 (RFC 3629). */
size_t heft_utf8_valid(const void *p, size_t len);
static inline bool heft_str_is_utf8(heft_str s)
{
    return heft_utf8_valid(s.ptr, s.len) == s.len;
}
bool heft_is_ascii(const void *p, size_t len);
/* The same in a few instructions for names of 8 bytes and more; false also when it does not look. */
static inline bool heft_is_ascii_name(const uint8_t *p, size_t len)
{
    uint64_t word, bits = 0;
    if (len < sizeof word)
        return false;
    for (size_t i = 0; i < len - sizeof word; i += sizeof word) {
        memcpy(&word, p + i, sizeof word);
        bits |= word;
    }
    memcpy(&word, p + len - sizeof word, sizeof word); /* some bytes again */
    return !((bits | word) & UINT64_C(0x8080808080808080));
}
/* Where the first of such bytes are that end before `end`, or NULL; for short stretches. */
const uint8_t *heft_str_seek(const uint8_t *p, const uint8_t *end, const void *what, size_t len);
/* Writes a code point below 0x110000 in UTF-8, which takes up to four bytes; returns how many. */
size_t heft_utf8_put(char *to, uint32_t code);
/* The value of a hexadecimal digit, or 16. */
uint32_t heft_hex_digit(char c);
/* Decimal digits of v, no terminator; returns how many, at most 20. */
size_t heft_u64_text(char out[20], uint64_t v);
/* Shell-style match on bytes: * ? [a-z] [!a] and \ before a literal character; bounded work. */
bool heft_glob(heft_str pattern, heft_str text);

#endif
