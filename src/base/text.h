/* text.h - strings with a length, UTF-8, digits and shell patterns, without a C library. */
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
/* Compare a text in letters of either case with one in small letters. */
bool heft_str_is_any_case(heft_str a, const char *small);
bool heft_str_begins(heft_str s, const char *with);
bool heft_str_ends(heft_str s, const char *with);
/* Cut the first word off a list; words are separated by single spaces. */
heft_str heft_str_next_word(heft_str *list);
/* Return true if a list has the word.  An empty word is in no list. */
bool heft_str_has_word(heft_str list, heft_str word);
/* Compare by bytes, a prefix before the longer string; return a number below, equal to or above
 * 0. */
int heft_str_order(heft_str a, heft_str b);
/* FNV-1a, 32 bits; not for untrusted names, which can be made to collide. */
uint32_t heft_str_fnv1a(heft_str s);
bool heft_str_has_nul(heft_str s);
/* Return the length of the longest valid UTF-8 prefix (RFC 3629); len if all bytes are valid. */
size_t heft_utf8_valid(const void *p, size_t len);
static inline bool heft_str_is_utf8(heft_str s)
{
    return heft_utf8_valid(s.ptr, s.len) == s.len;
}
bool heft_is_ascii(const void *p, size_t len);
/* A fast heft_is_ascii() for names of at least 8 bytes; returns false for shorter names. */
static inline bool heft_is_ascii_name(const uint8_t *p, size_t len)
{
    uint64_t word, bits = 0;
    if (len < sizeof word)
        return false;
    for (size_t i = 0; i < len - sizeof word; i += sizeof word) {
        memcpy(&word, p + i, sizeof word);
        bits |= word;
    }
    memcpy(&word, p + len - sizeof word, sizeof word); /* may overlap the word before */
    return !((bits | word) & UINT64_C(0x8080808080808080));
}
/* Return the first occurrence of the len bytes at `what` in [p, end), or NULL.  The search is a
 * simple loop, meant for short ranges. */
const uint8_t *heft_str_seek(const uint8_t *p, const uint8_t *end, const void *what, size_t len);
/* Write a code point below 0x110000 as UTF-8; return the number of bytes, at most 4. */
size_t heft_utf8_put(char *to, uint32_t code);
/* Return the value of a hexadecimal digit, or 16 if c is not one. */
uint32_t heft_hex_digit(char c);
/* Read a number of `digits` hexadecimal digits, at most 8; return false for other text. */
bool heft_hex_number(uint32_t *out, const char *p, size_t digits);
/* Read two hexadecimal digits for each of len bytes; return false for other text. */
bool heft_hex_read(uint8_t *out, size_t len, heft_str digits);
/* Write two small hexadecimal digits for each byte, without a terminator. */
void heft_hex_text(char *out, const uint8_t *bytes, size_t len);
void heft_hex_capitals(char *out, const uint8_t *bytes, size_t len);
/* Write the decimal digits of v without a terminator; return the number of digits, at most 20. */
size_t heft_u64_text(char out[20], uint64_t v);
/* Match a shell pattern on bytes: * ? [a-z] [!a], and \ before a literal character.  The time is at
 * most proportional to the product of both lengths. */
bool heft_glob(heft_str pattern, heft_str text);

#endif
