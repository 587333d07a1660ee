#include "text/shell_word.h"

#include <stdbool.h>

#include "text/hex.h"

/* ---- reading ---- */

/* Decode at most `most` octal or hexadecimal digits at p. */
static const char *read_digits(char *out, const char *p, unsigned base, int most)
{
    unsigned value = 0;
    for (; most && hex_digit(*p) < base; most--, p++)
        value = value * base + hex_digit(*p);
    *out = (char)value;
    return p;
}

/* Decode the escape sequence of $'...' after a backslash; return the end of the sequence. */
static const char *read_escape(char *out, const char *p)
{
    static const char letters[] = "abefnrtvE", values[] = "\a\b\033\f\n\r\t\v\033";
    const char *known = strchr(letters, *p);
    if (*p == 'x')
        return read_digits(out, p + 1, 16, 2);
    if (*p >= '0' && *p <= '7')
        return read_digits(out, p, 8, 3);
    *out = known ? values[known - letters] : *p;
    return p + 1;
}

/* Return true if the backslash at p is removed: always outside of quotation, and before some
 * characters in "...". */
static bool is_escape(const char *p, char quote)
{
    if (*p != '\\' || !p[1] || quote == '\'')
        return false;
    return quote != '"' || strchr("\"$`\\", p[1]);
}

/* Return the bytes at p that open or close a quotation, or 0; *quote becomes the open quotation. */
static size_t pass_quote(char *quote, const char *p)
{
    char before = *quote;
    if (before && *p == (before == '$' ? '\'' : before))
        *quote = 0;
    else if (!before && (*p == '\'' || *p == '"'))
        *quote = *p;
    else if (!before && *p == '$' && p[1] == '\'')
        *quote = '$';
    return *quote == before ? 0 : *quote == '$' ? 2 : 1;
}

char shell_unquote(char *word)
{
    char quote = 0, *to = word;
    for (const char *p = word; *p;) {
        size_t mark = pass_quote(&quote, p);
        p += mark;
        if (mark)
            continue;
        if (quote == '$' && *p == '\\' && p[1]) {
            p = read_escape(to++, p + 1);
            continue;
        }
        p += quote != '$' && is_escape(p, quote);
        *to++ = *p++;
    }
    *to = 0;
    return quote;
}

/* ---- writing ---- */

static bool has_control(heft_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7F)
            return true;
    return false;
}

/* Write the text between the marks of $'...'; this quotation can show every byte. */
static void out_escapes(outbuf *o, heft_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < ' ' || c == 0x7F)
            out_format(o, "\\%03o", c);
        else
            out_format(o, c == '\'' || c == '\\' ? "\\%c" : "%c", c);
    }
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (unsigned char)c >= 0x80 || strchr("_./:@%+,=-", c);
}

/* Return true if an open quotation cannot show the character: the closing mark, a control
 * character, and the exclamation mark in "...". */
static bool is_apart(char c, char quote)
{
    return c == quote || has_control((heft_str){ &c, 1 }) || (quote == '"' && c == '!');
}

/* Write a character within an open quotation, or apart: the quotation ends before the character and
 * begins again. */
static void out_quoted_char(outbuf *o, char c, char quote)
{
    if (is_apart(c, quote)) {
        out_char(o, quote);
        out_shell_word(o, (heft_str){ &c, 1 }, 0);
        out_char(o, quote);
        return;
    }
    out_text(o, quote == '"' && strchr("$`\\", c) ? "\\" : "");
    out_char(o, c);
}

/* Write a text within an open quotation. Readline closes the quotation, unless the text ends with
 * the mark: then the text has to close the quotation. */
static void out_in_quotation(outbuf *o, heft_str text, char quote)
{
    char last = text.len ? text.ptr[text.len - 1] : 0;
    if (quote == '$')
        out_escapes(o, text);
    for (size_t i = 0; i < text.len && quote != '$'; i++)
        out_quoted_char(o, text.ptr[i], quote);
    if (quote == '$' && last == '\'')
        out_char(o, '\'');
    else if (text.len && quote != '$' && is_apart(last, quote))
        out_char(o, quote);
}

void out_shell_word(outbuf *o, heft_str text, char quote)
{
    if (quote) {
        out_in_quotation(o, text, quote);
        return;
    }
    if (has_control(text)) {
        out_text(o, "$'");
        out_escapes(o, text);
        out_char(o, '\'');
        return;
    }
    for (size_t i = 0; i < text.len; i++) {
        out_text(o, is_plain(text.ptr[i]) ? "" : "\\");
        out_char(o, text.ptr[i]);
    }
}
