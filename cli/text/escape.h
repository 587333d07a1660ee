/* escape.h - escape text from files for terminals and for JSON. */
#ifndef HEFT_CLI_ESCAPE_H
#define HEFT_CLI_ESCAPE_H
#include "text/outbuf.h"

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
