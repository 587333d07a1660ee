/* escape.h - text from files, made harmless for people and for JSON. */
#ifndef HEFT_CLI_ESCAPE_H
#define HEFT_CLI_ESCAPE_H
#include "outbuf.h"

/* Control characters, characters that turn the direction of text, and bytes that are not UTF-8
 * come out as \n, \x1b, \u202e; a backslash as two, so that names stay distinct. */
void out_escaped(outbuf *o, heft_str s);
/* The same for a message or a path, in which a backslash stays one. */
void out_message(outbuf *o, const char *s);
/* A name for a table: escaped, and "" when it is empty. */
void out_name(outbuf *o, heft_str s);
/* A JSON string with its quotes; U+FFFD stands for bytes that are not UTF-8. */
void out_json_string(outbuf *o, heft_str s);

static inline heft_str str_of(const char *s)
{
    return (heft_str){ s, __builtin_strlen(s) };
}

static inline bool str_same(heft_str a, heft_str b)
{
    return a.len == b.len && (!a.len || !memcmp(a.ptr, b.ptr, a.len));
}

#endif
