#include "text/escape.h"

#include <string.h>

/* Return the length of the UTF-8 sequence at p and store the code point, or return 0 if it is
 * invalid. */
static size_t utf8_at(const uint8_t *p, size_t n, uint32_t *code)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t len = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    if (!len || len > n || p[0] > 0xF4)
        return 0;
    uint32_t c = len == 1 ? p[0] : p[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3F);
    }
    if (c < least[len] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return 0;
    *code = c;
    return len;
}

/* Return true for characters that move the cursor, hide text or change the text direction. */
static bool is_harmful(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

static void out_code(outbuf *o, uint32_t c)
{
    static const char letters[] = "\tt\nn\rr";
    for (size_t i = 0; i < sizeof letters - 1; i += 2)
        if (c == (uint8_t)letters[i]) {
            out_char(o, '\\');
            out_char(o, letters[i + 1]);
            return;
        }
    out_format(o, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
}

enum { STEP = sizeof(uint64_t) };

/* Return true if eight bytes are printable ASCII without a backslash or DEL. */
static bool is_plain(const uint8_t *p)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones * 0x80;
    uint64_t eight;
    memcpy(&eight, p, sizeof eight);
    uint64_t backslash = eight ^ ones * '\\', del = eight ^ ones * 0x7F;
    return !(((backslash - ones) | (del - ones) | (eight - ones * ' ') | eight) & tops);
}

static void escape(outbuf *o, heft_str s, bool backslash)
{
    const uint8_t *p = (const uint8_t *)s.ptr;
    size_t from = 0, i = 0;
    while (s.len - i >= STEP && is_plain(p + i)) /* most names end here */
        i += STEP;
    /* the last step overlaps */
    if (s.len >= STEP && s.len - i < STEP && is_plain(p + s.len - STEP))
        i = s.len;
    while (i < s.len) {
        uint32_t c = p[i];
        size_t len = 1;
        if (c >= 0x80)
            len = utf8_at(p + i, s.len - i, &c);
        if (len && !is_harmful(c) && !(backslash && c == '\\')) {
            i += len;
            continue;
        }
        out_bytes(o, s.ptr + from, i - from);
        if (c == '\\')
            out_text(o, "\\\\");
        else
            out_code(o, len ? c : p[i]);
        i += len ? len : 1;
        from = i;
    }
    if (from < s.len)
        out_bytes(o, s.ptr + from, s.len - from);
}

void out_escaped(outbuf *o, heft_str s)
{
    escape(o, s, true);
}

void out_message(outbuf *o, const char *s)
{
    escape(o, (heft_str){ s, strlen(s) }, false);
}

void out_name(outbuf *o, heft_str s)
{
    if (s.len)
        escape(o, s, true);
    else
        out_text(o, "\"\"");
}

static void out_json_escape(outbuf *o, uint32_t c)
{
    switch (c) {
    case '\n':
        out_text(o, "\\n");
        break;
    case '\t':
        out_text(o, "\\t");
        break;
    case '"':
    case '\\':
        out_char(o, '\\');
        out_char(o, (char)c);
        break;
    default:
        out_format(o, "\\u%04x", c);
    }
}

void out_json_string(outbuf *o, heft_str s)
{
    const uint8_t *p = (const uint8_t *)s.ptr;
    size_t from = 0;
    out_char(o, '"');
    for (size_t i = 0; i < s.len;) {
        uint32_t c = p[i];
        size_t len = c < 0x80 ? 1 : utf8_at(p + i, s.len - i, &c);
        if (len && c != '"' && c != '\\' && !is_harmful(c)) {
            i += len;
            continue;
        }
        out_bytes(o, s.ptr + from, i - from);
        if (len)
            out_json_escape(o, c);
        else
            out_text(o, "\xEF\xBF\xBD");
        i += len ? len : 1;
        from = i;
    }
    out_bytes(o, s.ptr + from, s.len - from);
    out_char(o, '"');
}
