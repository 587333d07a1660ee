/* json.h - a pull reader over JSON text in memory, and pieces of a writer (RFC 8259).
 *
 * No tree: the caller asks for the next token and keeps what it needs.  Strings without escapes are lent;
 * others are unescaped into the caller's arena.  Depth is bounded by a bit per level, nothing recurses.
 */
#ifndef HEFT_JSON_H
#define HEFT_JSON_H
#include "base/arena.h"
#include "base/cursor.h"
#include "base/out.h"

typedef enum heft_json_kind {
    HEFT_JSON_FAILED, /* status and message are set */
    HEFT_JSON_END,    /* the document is complete, only white space follows */
    HEFT_JSON_OBJECT, /* { */
    HEFT_JSON_OBJECT_END,
    HEFT_JSON_ARRAY,
    HEFT_JSON_ARRAY_END,
    HEFT_JSON_KEY,
    HEFT_JSON_STRING,
    HEFT_JSON_NUMBER, /* text holds it as written */
    HEFT_JSON_TRUE,
    HEFT_JSON_FALSE,
    HEFT_JSON_NULL
} heft_json_kind;

enum { HEFT_JSON_DEPTH = 256 };

typedef struct heft_json {
    const char *p, *end, *start;
    uint64_t base;     /* file offset of start, for messages */
    heft_arena *arena; /* for strings with escapes; NULL: those are HEFT_E_UNSUPPORTED */
    heft_error *err;
    uint64_t in_object[HEFT_JSON_DEPTH / 64]; /* a bit per level */
    uint32_t depth, max_depth;
    uint8_t state;
    heft_status st;
    heft_str text;     /* of the key, string or number read last */
    const char *token; /* where it began */
} heft_json;

/* text must be valid UTF-8 where strings are to be trusted: the reader checks it as it goes. */
heft_json heft_json_open(heft_str text, uint64_t base, uint32_t max_depth, heft_arena *arena,
                         heft_error *err);
heft_json_kind heft_json_next(heft_json *j);
/* Passes over the rest of the value whose first token was k; when k is a key, over the key's value.
 * What is passed over is checked but takes no memory. */
heft_status heft_json_skip(heft_json *j, heft_json_kind k);
/* A non-negative integer without fraction or exponent from j->text; false when it is none or
 * passes 64 bits. */
bool heft_json_u64(uint64_t *out, heft_str number);
/* Most arrays are of whole numbers and plainly written: after a key, looks for one of at least one and at
 * most `most` numbers, none with a sign, a fraction or an exponent, blanks the only white space.  Returns how
 * many, with the place behind the array for heft_json_accept(); HEFT_JSON_NOT_PLAIN: read it token by token, which
 * also tells what is wrong with it. */
enum { HEFT_JSON_NOT_PLAIN = 0 };
uint32_t heft_json_fast_u64s(const heft_json *j, uint64_t *out, uint32_t most, const char **behind);
void heft_json_accept(heft_json *j, const char *behind);
/* Goes on behind another value of the same container, quietly, with memory of its own. */
void heft_json_fork(heft_json *j, const char *behind, heft_arena *arena);
/* Sets the error at the token read last. */
heft_status heft_json_fail(heft_json *j, const char *fmt, ...);

/* "text" with the escapes that RFC 8259 demands; control characters as \u00XX. */
void heft_json_put_str(heft_out *o, heft_str s);
void heft_json_put_u64(heft_out *o, uint64_t v);
void heft_json_put_i64(heft_out *o, int64_t v);

#endif
