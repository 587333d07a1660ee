/* json.c - a strict reader for JSON (RFC 8259): no comments, no trailing commas, no lone
 * surrogates, a single value per text.
 *
 * Strings are the bulk of a large header, so the end of a string is searched eight bytes at a time
 * (json.h), and UTF-8 is only validated if some byte was not ASCII.
 */
#include "grammar/json.h"

#include <string.h>

#include "base/checked_math.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/text.h"

enum { AT_VALUE, AT_FIRST_VALUE, AT_KEY, AT_FIRST_KEY, AFTER_VALUE };

/* ---- errors ---- */

/* Set the error and return false (HEFT_JSON_FAILED). */
static bool fail_at(heft_json *j, const char *where, heft_status st, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    j->st = heft_error_set_list(j->err, st, j->base + (uint64_t)(where - j->start), fmt, &ap);
    va_end(ap);
    if (st == HEFT_E_LIMIT) /* depth is the only limit */
        heft_error_rule(j->err, st, "heft/limit-depth");
    return false;
}

/* Report the unexpected character at j->p, or the byte if the text is not UTF-8. */
static bool expected(heft_json *j, const char *what)
{
    if (j->p == j->end)
        return fail_at(j, j->p, HEFT_E_FORMAT, "JSON: the text ends where %s is expected", what);
    size_t left = (size_t)(j->end - j->p), n = 1;
    while (n < 4 && n < left && heft_utf8_valid(j->p, n) != n)
        n++;
    n = heft_utf8_valid(j->p, n) == n ? n : 1;
    return fail_at(j, j->p, HEFT_E_FORMAT, "JSON: %s is expected, not %q", what,
                   (heft_str){ j->p, n });
}

/* ---- nesting ---- */

static bool is_in_object(const heft_json *j)
{
    uint32_t level = j->depth - 1;
    return j->in_object[level / 64] >> level % 64 & 1;
}

static heft_json_kind open_container(heft_json *j, bool is_object)
{
    if (j->depth == j->max_depth)
        return fail_at(j, j->p, HEFT_E_LIMIT, "JSON: nested deeper than %U levels",
                       (uint64_t)j->max_depth);
    uint64_t bit = UINT64_C(1) << j->depth % 64, *word = &j->in_object[j->depth / 64];
    *word = is_object ? *word | bit : *word & ~bit;
    j->depth++;
    j->p++;
    j->state = is_object ? AT_FIRST_KEY : AT_FIRST_VALUE;
    return is_object ? HEFT_JSON_OBJECT : HEFT_JSON_ARRAY;
}

/* Only the matching bracket may follow. */
static heft_json_kind close_container(heft_json *j)
{
    bool is_object = is_in_object(j);
    if (j->p == j->end || *j->p != (is_object ? '}' : ']'))
        return expected(j, is_object ? "',' or '}'" : "',' or ']'");
    j->p++;
    j->depth--;
    j->state = AFTER_VALUE;
    return is_object ? HEFT_JSON_OBJECT_END : HEFT_JSON_ARRAY_END;
}

/* ---- strings ---- */

/* Read \uXXXX at p, or a surrogate pair.  Return the length, or 0 if invalid. */
static size_t read_unicode(uint32_t *code, const char *p, const char *end)
{
    uint32_t low;
    if (end - p < 6 || !heft_hex_number(code, p + 2, 4) || (*code >= 0xDC00 && *code < 0xE000))
        return 0;
    if (*code < 0xD800 || *code > 0xDFFF)
        return 6;
    if (end - p < 12 || p[6] != '\\' || p[7] != 'u' || !heft_hex_number(&low, p + 8, 4) ||
        low < 0xDC00 || low > 0xDFFF)
        return 0;
    *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
    return 12;
}

/* Read the escape at p, a backslash.  Return the length, or 0 if invalid. */
static size_t read_escape(uint32_t *code, const char *p, const char *end)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (end - p < 2)
        return 0;
    if (p[1] == 'u')
        return read_unicode(code, p, end);
    for (unsigned i = 0; i < sizeof letters - 1; i++)
        if (p[1] == letters[i]) {
            *code = (uint8_t)meanings[i];
            return 2;
        }
    return 0;
}

/* Unescape a string with valid escapes into the arena.  Unescaping never lengthens a string. */
static bool unescape(heft_json *j, heft_str raw)
{
    char *to = j->arena ? heft_arena_alloc(j->arena, raw.len, 1) : NULL;
    if (!j->arena)
        return fail_at(j, j->token, HEFT_E_UNSUPPORTED,
                       "JSON: a string with escapes is not supported here");
    if (!to)
        return fail_at(j, j->token, HEFT_E_NOMEM, "JSON: no memory for a string of %U bytes",
                       (uint64_t)raw.len);
    j->text = (heft_str){ to, 0 };
    for (const char *p = raw.ptr, *end = raw.ptr + raw.len; p < end;) {
        uint64_t high = 0;
        const char *stop = heft_json_find_stop(p, end, &high);
        size_t plain = (size_t)(stop - p);
        memcpy(to + j->text.len, p, plain);
        j->text.len += plain;
        p = stop;
        uint32_t code;
        size_t n = p < end ? read_escape(&code, p, end) : 0;
        if (p < end && !n) /* a mapped file may have changed since the check */
            return fail_at(j, p, HEFT_E_IO, "JSON: the text changed while it was read");
        if (n)
            j->text.len += heft_utf8_put(to + j->text.len, code);
        p += n;
    }
    return true;
}

/* Return the end of the escape at p, or NULL after an error. */
static const char *skip_escape(heft_json *j, const char *p)
{
    uint32_t code;
    size_t n = read_escape(&code, p, j->end);
    if (n)
        return p + n;
    size_t left = (size_t)(j->end - p);
    if (left >= 2 && p[1] == 'u')
        fail_at(j, p, HEFT_E_FORMAT,
                "JSON: \\u with four hexadecimal digits is expected, surrogates in pairs");
    else if (left >= 2)
        fail_at(j, p, HEFT_E_FORMAT, "JSON: one of \" \\ / b f n r t u is expected after a \\");
    else
        fail_at(j, j->end, HEFT_E_FORMAT, "JSON: the text ends inside a string");
    return NULL;
}

/* Finish a string that contains escapes, non-ASCII characters or an error, from the first stop p
 * on.  `high` comes from heft_json_find_stop(). */
static bool read_general_string(heft_json *j, const char *first, const char *p, uint64_t high,
                                bool want_text)
{
    bool has_escapes = false;
    for (; p == j->end || *p != '"'; p = heft_json_find_stop(p, j->end, &high)) {
        if (p == j->end)
            return fail_at(j, p, HEFT_E_FORMAT, "JSON: the text ends inside a string");
        if (*p != '\\')
            return fail_at(j, p, HEFT_E_FORMAT, "JSON: the control character 0x%X in a string",
                           (uint64_t)(uint8_t)*p);
        has_escapes = true;
        p = skip_escape(j, p);
        if (!p)
            return false;
    }
    heft_str raw = { first, (size_t)(p - first) };
    size_t valid = high ? heft_utf8_valid(raw.ptr, raw.len) : raw.len;
    if (valid < raw.len)
        return fail_at(j, first + valid, HEFT_E_FORMAT, "JSON: a string is not UTF-8: byte 0x%X",
                       (uint64_t)(uint8_t)first[valid]);
    j->p = p + 1;
    j->text = raw;
    return !has_escapes || !want_text || unescape(j, raw);
}

/* Read the string at j->p, a quote, into j->text; return false after an error. */
static bool read_string(heft_json *j, bool want_text)
{
    const char *first = j->p + 1;
    uint64_t high = 0;
    const char *p = heft_json_find_stop(first, j->end, &high);
    if (heft_unlikely(high || p == j->end || *p != '"'))
        return read_general_string(j, first, p, high, want_text);
    j->p = p + 1;
    j->text = (heft_str){ first, (size_t)(p - first) };
    return true;
}

/* ---- numbers ---- */

static inline bool is_digit(const char *p, const char *end)
{
    return p < end && (uint8_t)(*p - '0') < 10;
}

/* Skip the digits at j->p, at least one. */
static bool skip_digits(heft_json *j)
{
    const char *p = j->p;
    while (is_digit(p, j->end))
        p++;
    if (p == j->p)
        return expected(j, "a digit");
    j->p = p;
    return true;
}

static bool is_at(const heft_json *j, char a, char b)
{
    return j->p < j->end && (*j->p == a || *j->p == b);
}

static heft_json_kind read_number(heft_json *j)
{
    if (*j->p == '-')
        j->p++;
    if (is_at(j, '0', '0'))
        j->p++; /* RFC 8259 §6: no digit may follow a leading zero */
    else if (!skip_digits(j))
        return HEFT_JSON_FAILED;
    if (is_at(j, '.', '.')) {
        j->p++;
        if (!skip_digits(j))
            return HEFT_JSON_FAILED;
    }
    if (is_at(j, 'e', 'E')) {
        j->p++;
        j->p += is_at(j, '+', '-');
        if (!skip_digits(j))
            return HEFT_JSON_FAILED;
    }
    j->text = (heft_str){ j->token, (size_t)(j->p - j->token) };
    j->state = AFTER_VALUE;
    return HEFT_JSON_NUMBER;
}

/* ---- tokens ---- */

static inline const char *skip_space(const char *p, const char *end)
{
    while (p < end && (uint8_t)*p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

static heft_json_kind read_word(heft_json *j, const char *word, heft_json_kind k)
{
    heft_str w = heft_lit(word);
    if ((size_t)(j->end - j->p) < w.len || memcmp(j->p, w.ptr, w.len) != 0)
        return expected(j, word);
    j->p += w.len;
    j->state = AFTER_VALUE;
    return k;
}

static heft_json_kind read_key(heft_json *j, bool want_text)
{
    if (*j->p != '"')
        return expected(j, j->state == AT_KEY ? "a key in quotes" : "a key in quotes or '}'");
    if (!read_string(j, want_text))
        return HEFT_JSON_FAILED;
    j->p = skip_space(j->p, j->end);
    if (j->p == j->end || *j->p != ':')
        return expected(j, "':'");
    j->p++;
    j->state = AT_VALUE;
    return HEFT_JSON_KEY;
}

static heft_json_kind read_value(heft_json *j, bool want_text)
{
    switch (*j->p) {
    case '"':
        j->state = AFTER_VALUE;
        return read_string(j, want_text) ? HEFT_JSON_STRING : HEFT_JSON_FAILED;
    case '{':
        return open_container(j, true);
    case '[':
        return open_container(j, false);
    case 't':
        return read_word(j, "true", HEFT_JSON_TRUE);
    case 'f':
        return read_word(j, "false", HEFT_JSON_FALSE);
    case 'n':
        return read_word(j, "null", HEFT_JSON_NULL);
    default:
        if (*j->p == '-' || is_digit(j->p, j->end))
            return read_number(j);
        return expected(j, j->state == AT_VALUE ? "a value" : "a value or ']'");
    }
}

/* Read the next token.  want_text: unescape strings, instead of only checking the escapes. */
static heft_json_kind next_token(heft_json *j, bool want_text)
{
    static const char *const wanted[] = { "a value", "a value or ']'", "a key in quotes",
                                          "a key in quotes or '}'" };
    if (heft_unlikely(j->st))
        return HEFT_JSON_FAILED;
    const char *p = skip_space(j->p, j->end);
    j->p = j->token = p;
    if (j->state == AFTER_VALUE) {
        if (!j->depth)
            return p == j->end ? HEFT_JSON_END : expected(j, "the end of the text");
        if (p == j->end || *p != ',')
            return close_container(j);
        p = skip_space(p + 1, j->end);
        j->p = j->token = p;
        j->state = is_in_object(j) ? AT_KEY : AT_VALUE;
    }
    if (heft_unlikely(p == j->end))
        return expected(j, wanted[j->state]);
    if ((j->state == AT_FIRST_KEY && *p == '}') || (j->state == AT_FIRST_VALUE && *p == ']'))
        return close_container(j);
    return j->state == AT_KEY || j->state == AT_FIRST_KEY ? read_key(j, want_text)
                                                          : read_value(j, want_text);
}

heft_json heft_json_open(heft_str text, uint64_t base, uint32_t max_depth, heft_arena *arena,
                         heft_error *err)
{
    const char *first = text.len ? text.ptr : "";
    return (heft_json){ .p = first,
                        .end = first + text.len,
                        .start = first,
                        .base = base,
                        .arena = arena,
                        .err = err,
                        .max_depth = max_depth < HEFT_JSON_DEPTH ? max_depth : HEFT_JSON_DEPTH,
                        .token = first };
}

heft_json_kind heft_json_next(heft_json *j)
{
    return next_token(j, true);
}

heft_status heft_json_skip(heft_json *j, heft_json_kind k)
{
    if (k == HEFT_JSON_KEY)
        k = next_token(j, false);
    if (k != HEFT_JSON_OBJECT && k != HEFT_JSON_ARRAY)
        return j->st;
    for (uint32_t parent = j->depth - 1; j->depth > parent && !j->st;)
        k = next_token(j, false);
    return j->st;
}

void heft_json_accept(heft_json *j, const char *after)
{
    j->token = after - 1;
    j->p = after;
    j->state = AFTER_VALUE;
}

void heft_json_fork(heft_json *j, const char *after, heft_arena *arena)
{
    heft_json_accept(j, after);
    j->arena = arena;
    j->err = NULL;
}

heft_status heft_json_fail(heft_json *j, const char *fmt, ...)
{
    if (j->st)
        return j->st;
    va_list ap;
    va_start(ap, fmt);
    j->st = heft_error_set_list(j->err, HEFT_E_FORMAT, j->base + (uint64_t)(j->token - j->start),
                                fmt, &ap);
    va_end(ap);
    return j->st;
}
