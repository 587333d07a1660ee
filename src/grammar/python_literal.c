/* python_literal.c - reads the parts of a literal as the Python Language Reference defines them
 * (section 2, "Lexical analysis").  Unlike Python, it does not know characters by name ("\N{...}"),
 * and it refuses bytes and formatted strings, which are never keys or types.  Small builds read
 * what NumPy itself writes: no escapes, and decimal integers. */
#include "grammar/python_literal.h"

#include "base/checked_math.h"
#include "base/text.h"

/* ---- between tokens ---- */

static bool is_line_end(char c)
{
    return c == '\n' || c == '\r';
}

/* Return the next character of a token, or 0. */
static char at(const heft_python *l)
{
    return l->p < l->end ? *l->p : 0;
}

char heft_python_peek(heft_python *l)
{
    for (; l->p < l->end; l->p++) {
        bool is_joined = !HEFT_IS_SMALL && *l->p == '\\' && l->p + 1 < l->end &&
                         is_line_end(l->p[1]);
        if (!HEFT_IS_SMALL && *l->p == '#')
            while (l->p + 1 < l->end && l->p[1] && !is_line_end(l->p[1]))
                l->p++;
        else if (!is_joined && *l->p != ' ' && *l->p != '\t' && *l->p != '\f' &&
                 !is_line_end(*l->p))
            break;
    }
    return at(l);
}

bool heft_python_take(heft_python *l, char c)
{
    bool matches = heft_python_peek(l) == c;
    l->p += matches;
    return matches;
}

uint32_t heft_python_open(heft_python *l)
{
    uint32_t count = 0;
    while (heft_python_take(l, '('))
        count++;
    return count;
}

const char *heft_python_close(heft_python *l, uint32_t count)
{
    for (; count; count--)
        if (!heft_python_take(l, ')'))
            return "a parenthesis is not closed in the header";
    return NULL;
}

static bool is_in_word(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' ||
           (uint8_t)c > 127;
}

bool heft_python_word(heft_python *l, const char *word)
{
    heft_python_peek(l);
    heft_str rest = { l->p, (size_t)(l->end - l->p) };
    size_t len = heft_lit(word).len;
    bool matches = heft_str_begins(rest, word) && (rest.len == len || !is_in_word(rest.ptr[len]));
    l->p += matches ? len : 0;
    return matches;
}

/* ---- digits ---- */

/* Read up to `most` digits; return their number. */
static uint32_t read_digits(heft_python *l, uint32_t base, uint32_t most, uint32_t *out)
{
    uint32_t count = 0;
    for (*out = 0; count < most && heft_hex_digit(at(l)) < base; count++)
        *out = *out * base + heft_hex_digit(*l->p++);
    return count;
}

/* ---- strings ---- */

static void put(heft_python_text *out, char c)
{
    if (out->len < HEFT_PYTHON_TEXT)
        out->bytes[out->len++] = c;
}

/* Read what follows a backslash; return false if it is not an escape sequence. */
static bool read_escape(heft_python *l, heft_python_text *out)
{
    enum { DEL = 127, LAST = 0x10FFFF, HEX = 16, OCTAL = 8, MOST_OCTAL = 3 };
    static const char letters[] = "\\'\"abfnrtv", meanings[] = "\\'\"\a\b\f\n\r\t\v";
    char c = at(l);
    size_t letter = 0;
    uint32_t value = 0, wanted = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (!c || c == 'N' || HEFT_IS_SMALL)
        return false;
    if (c >= '0' && c < '8') {
        read_digits(l, OCTAL, MOST_OCTAL, &value);
        put(out, (char)(value < DEL ? value : DEL));
        return true;
    }
    l->p++;
    if (wanted) {
        bool ok = read_digits(l, HEX, wanted, &value) == wanted && value <= LAST;
        put(out, (char)(value < DEL ? value : DEL));
        return ok;
    }
    while (letters[letter] && letters[letter] != c)
        letter++;
    if (letters[letter]) {
        put(out, meanings[letter]);
    } else if (is_line_end(c)) {
        l->p += c == '\r' && at(l) == '\n';
    } else {
        put(out, '\\');
        put(out, c);
    }
    return true;
}

static bool is_at_quotes(const heft_python *l, char quote, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (l->p + i >= l->end || l->p[i] != quote)
            return false;
    return true;
}

static const char *read_one_string(heft_python *l, heft_python_text *out)
{
    char prefix = (char)(heft_python_peek(l) | 0x20);
    bool is_raw = !HEFT_IS_SMALL && prefix == 'r', has_prefix = is_raw || prefix == 'u';
    char quote = l->p + has_prefix < l->end ? l->p[has_prefix] : 0;
    if (quote != '\'' && quote != '"')
        return "a string is missing in the header";
    l->p += has_prefix;
    size_t quotes = !HEFT_IS_SMALL && is_at_quotes(l, quote, 3) ? 3 : 1;
    for (l->p += quotes; !is_at_quotes(l, quote, quotes);) {
        char c = at(l);
        if (!c || (quotes == 1 && is_line_end(c)))
            return "a string in the header does not end";
        if (c == '\\' && !is_raw) {
            const char *from = l->p++;
            bool is_known = read_escape(l, out);
            l->p = is_known ? l->p : from;
            if (!is_known)
                return "a string in the header has an unknown escape";
            continue;
        }
        put(out, c);
        l->p++;
        if (is_raw && c == '\\' &&
            at(l)) /* raw: a backslash keeps a quote from ending the string */
            put(out, *l->p++);
    }
    l->p += quotes;
    return NULL;
}

const char *heft_python_string(heft_python *l, heft_python_text *out)
{
    out->len = 0;
    const char *why = read_one_string(l, out);
    while (!why && !HEFT_IS_SMALL) {
        char next = heft_python_peek(l);
        bool has_prefix = (next | 0x20) == 'r' || (next | 0x20) == 'u';
        if (next != '\'' && next != '"' && !has_prefix)
            break;
        why = read_one_string(l, out);
    }
    return why;
}

/* ---- integers ---- */

static uint32_t read_base(heft_python *l)
{
    enum { BINARY = 2, OCTAL = 8, DECIMAL = 10, HEX = 16 };
    char letter = !HEFT_IS_SMALL && at(l) == '0' && l->p + 1 < l->end ? (char)(l->p[1] | 0x20) : 0;
    uint32_t base = letter == 'x' ? HEX : letter == 'o' ? OCTAL : letter == 'b' ? BINARY : DECIMAL;
    l->p += base != DECIMAL ? 2 : 0;
    l->p += base != DECIMAL && at(l) == '_';
    return base;
}

/* Skip the L of Python 2, which NumPy removes wherever it follows a number on the line. */
static void skip_long(heft_python *l)
{
    const char *p = l->p;
    while (p < l->end && (*p == ' ' || *p == '\t' || *p == '\f'))
        p++;
    bool is_word = p + 1 < l->end && is_in_word(p[1]);
    if (l->has_long && p < l->end && *p == 'L' && !is_word)
        l->p = p + 1;
}

/* Read digits with single underscores between them. */
static const char *read_number(heft_python *l, uint64_t *out)
{
    static const char bad[] = "a dimension is not an integer";
    uint32_t base = read_base(l);
    const char *from = l->p;
    uint64_t v = 0;
    for (; heft_hex_digit(at(l)) < base;
         l->p += !HEFT_IS_SMALL && at(l) == '_' && l->p + 1 < l->end) {
        uint32_t digit = heft_hex_digit(*l->p);
        if (!heft_mul(&v, v, base) || !heft_add(&v, v, digit) || v >> 63)
            return "a dimension exceeds 2^63 - 1";
        l->p++;
    }
    /* 010 is an octal number of Python 2. */
    bool is_padded = !HEFT_IS_SMALL && base == 10 && v && *from == '0';
    if (l->p == from || l->p[-1] == '_' || is_padded || is_in_word(at(l)) != (at(l) == 'L'))
        return bad;
    skip_long(l);
    *out = v;
    return NULL;
}

const char *heft_python_integer(heft_python *l, uint64_t *out)
{
    heft_python_peek(l);
    if (HEFT_IS_SMALL)
        return read_number(l, out);
    bool is_negative = heft_python_take(l, '-'),
         is_signed = is_negative || heft_python_take(l, '+');
    uint32_t opened = is_signed ? heft_python_open(l) : 0;
    heft_python_peek(l);
    const char *why = read_number(l, out);
    if (!why && is_negative && *out)
        return "a dimension is negative";
    return why ? why : heft_python_close(l, opened);
}
