/* json.h - a pull reader for JSON text in memory, and functions that write strings and numbers (RFC
 * 8259).
 *
 * The reader builds no tree: the caller asks for the next token and stores the values that matter.
 * Strings without escapes are borrowed from the text; strings with escapes are unescaped into the
 * caller's arena. Depth is bounded (a bit per level) without recursion.
 */
#ifndef HEFT_JSON_H
#define HEFT_JSON_H
#include "base/arena.h"
#include "base/compiler.h"
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
    HEFT_JSON_NUMBER, /* as spelled in `text` */
    HEFT_JSON_TRUE,
    HEFT_JSON_FALSE,
    HEFT_JSON_NULL
} heft_json_kind;

enum { HEFT_JSON_DEPTH = HEFT_IS_SMALL ? 64 : 256 };

typedef struct heft_json {
    const char *p, *end, *start;
    uint64_t base;     /* file offset of start, for messages */
    heft_arena *arena; /* for unescaped strings; NULL: escapes are HEFT_E_UNSUPPORTED */
    heft_error *err;
    uint64_t in_object[HEFT_JSON_DEPTH / 64]; /* a bit per level: object or array */
    uint32_t depth, max_depth;
    uint8_t state;
    heft_status st;
    heft_str text;     /* the key, string or number read last */
    const char *token; /* start of the token read last */
} heft_json;

/* Open a reader.  Strings are checked for valid UTF-8 while reading. */
heft_json heft_json_open(heft_str text, uint64_t base, uint32_t max_depth, heft_arena *arena,
                         heft_error *err);
heft_json_kind heft_json_next(heft_json *j);
/* Skip the rest of the value with the first token k, or the value of a key if k is HEFT_JSON_KEY.
 * Skipped tokens are checked but take no memory. */
heft_status heft_json_skip(heft_json *j, heft_json_kind k);
/* Convert the text of a number to a non-negative integer.  Return false for a fraction, an
 * exponent, a sign, or more than 64 bits. */
bool heft_json_u64(uint64_t *out, heft_str number);
/* Fast path for arrays of non-negative integers.  After a key, read an array of 1 to `max` numbers
 * without sign, fraction or exponent, with blanks as the only white space.  Return the number of
 * elements and set *after to the end of the array, for heft_json_accept().  HEFT_JSON_NOT_PLAIN:
 * nothing was read; the caller must read the array token by token, also to report errors. */
enum { HEFT_JSON_NOT_PLAIN = 0 };
uint32_t heft_json_fast_u64s(const heft_json *j, uint64_t *out, uint32_t max, const char **after);
void heft_json_accept(heft_json *j, const char *after);
/* Continue at `after`, the end of any value of the same container, with a new arena and without
 * error messages. For a worker's copy of a reader. */
void heft_json_fork(heft_json *j, const char *after, heft_arena *arena);
/* Set the error, with the offset of the last token. */
heft_status heft_json_fail(heft_json *j, const char *fmt, ...);

/* Emit a string in quotes, with the escapes that RFC 8259 requires: control characters as \b, \t,
 * \n, \f, \r or \u00XX. */
void heft_json_put_str(heft_out *o, heft_str s);
void heft_json_put_hex(heft_out *o, const uint8_t *bytes, size_t len); /* a string of digits */
void heft_json_put_u64(heft_out *o, uint64_t v);
void heft_json_put_i64(heft_out *o, int64_t v);

/* ---- finds the end of a run of plain characters in a JSON string ---- */

/* Return the top bit of each byte that ends the run: a quote, a backslash, a control character.
 * Exact up to the lowest such byte; borrows may corrupt the bits above. */
static inline uint64_t heft_json_stops(uint64_t x)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
    uint64_t quote = x ^ ones * '"', backslash = x ^ ones * '\\';
    return ((quote - ones) | (backslash - ones) | (x - ones * ' ')) & ~x & tops;
}

/* Return the first byte from p on that is not plain, or end.  *high collects the top bits of the
 * bytes passed. */
static inline const char *heft_json_find_stop(const char *p, const char *end, uint64_t *high)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
    for (; end - p >= 8; p += 8) {
        uint64_t x = heft_le64((const uint8_t *)p), hit = heft_json_stops(x);
        if (hit) {
            uint64_t below = (hit & (0 - hit)) - 1; /* includes 7 bits of the byte found */
            *high |= x & below & tops;
            return p + (((below & ones) * ones >> 56) - 1);
        }
        *high |= x & tops;
    }
    for (; p < end && *p != '"' && *p != '\\' && (uint8_t)*p >= ' '; p++)
        *high |= (uint8_t)*p & 0x80;
    return p;
}

#endif
