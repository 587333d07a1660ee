#include "process/narrow.h"

#include <string.h>
#include <wchar.h>

/* Return the number of bytes of the character at p, and set its width in columns. */
static size_t next_character(size_t *columns, const char *p, size_t len)
{
    mbstate_t state;
    wchar_t c;
    memset(&state, 0, sizeof state);
    size_t n = mbrtowc(&c, p, len, &state);
    *columns = 1;
    if (!n || n > len) /* the locale is not UTF-8 */
        return 1;
    int width = wcwidth(c);
    *columns = width > 0 ? (size_t)width : 0;
    return n;
}

size_t text_width(const char *text, size_t len)
{
    size_t columns = 0, width;
    for (size_t at = 0; at < len; columns += width)
        at += next_character(&width, text + at, len - at);
    return columns;
}

/* Return the number of bytes at the beginning that take at most `columns`. */
static size_t bytes_within(const char *text, size_t len, size_t columns)
{
    size_t at = 0, width, n;
    for (; at < len; at += n) {
        n = next_character(&width, text + at, len - at);
        if (width > columns)
            break;
        columns -= width;
    }
    return at;
}

void elide(outbuf *o, size_t from, size_t columns)
{
    static const char mark[] = "…";
    const size_t bytes = sizeof mark - 1;
    char *text = o->buf + from;
    size_t len = o->used - from, width = text_width(text, len);
    if (width <= columns || columns < 3)
        return;
    size_t head = bytes_within(text, len, columns / 2);
    size_t skipped = width - text_width(text, head) - (columns - columns / 2 - 1);
    size_t tail = head + bytes_within(text + head, len - head, skipped);
    if (text_width(text + tail, len - tail) > columns - columns / 2 - 1) /* a wide character */
        tail += bytes_within(text + tail, len - tail, 2);
    if (!out_reserve(o, bytes)) /* the mark may take more bytes than the characters */
        return;
    text = o->buf + from;
    memmove(text + head + bytes, text + tail, len - tail);
    memcpy(text + head, mark, bytes);
    o->used = from + head + bytes + len - tail;
}

void elide_indented(outbuf *o, size_t from, size_t columns)
{
    enum { SHORTEST_LABEL = 10 };
    size_t indent = 0, most = columns > SHORTEST_LABEL ? columns - SHORTEST_LABEL : 0;
    if (text_width(o->buf + from, o->used - from) <= columns)
        return;
    while (from + indent < o->used && o->buf[from + indent] == ' ')
        indent++;
    size_t label = from + indent, kept = indent;
    size_t width = text_width(o->buf + label, o->used - label);
    if (width < SHORTEST_LABEL) /* a short label takes less, so that more blanks stay */
        most = columns - width;
    if (indent > most) {
        memmove(o->buf + from + most, o->buf + label, o->used - label);
        o->used -= indent - most;
        kept = most;
    }
    elide(o, from + kept, columns - kept);
}

void out_wrapped(outbuf *o, const char *text, size_t at, size_t indent, size_t width)
{
    bool is_first = true;
    while (*(text += strspn(text, " \n"))) {
        size_t word = strcspn(text, " \n"), gap = is_first ? 0 : 1;
        size_t columns = text_width(text, word);
        if (at + gap + columns > width && !is_first) {
            out_char(o, '\n');
            out_fill(o, ' ', indent);
            at = indent;
            gap = 0;
        }
        out_fill(o, ' ', gap);
        out_bytes(o, text, word);
        at += gap + columns;
        text += word;
        is_first = false;
    }
    out_char(o, '\n');
}

/* ---- stacked rows ---- */

enum { INDENT = 2 };

static void put_item(outbuf *o, size_t *at, const column *c, const outbuf *cell, size_t columns)
{
    size_t width = strlen(c->title) + 1 + text_width(cell->buf, cell->used);
    if (*at && *at + INDENT + width > columns) {
        out_char(o, '\n');
        *at = 0;
    }
    out_fill(o, ' ', INDENT);
    out_text(o, c->title);
    out_char(o, ' ');
    out_bytes(o, cell->buf, cell->used);
    *at += INDENT + width;
}

void print_stacked(outbuf *o, const table *t, size_t columns)
{
    outbuf cell;
    out_open(&cell, -1);
    for (uint32_t i = 0; i < t->count; i++) {
        table_row row = table_row_at(t, i);
        size_t at = 0;
        t->cell(o, &row, t->columns[0].field);
        out_char(o, '\n');
        for (size_t c = 1; c < t->width; c++) {
            cell.used = 0;
            t->cell(&cell, &row, t->columns[c].field);
            put_item(o, &at, &t->columns[c], &cell, columns);
        }
        out_char(o, '\n');
    }
    o->os = cell.os ? cell.os : o->os;
    out_free(&cell);
}
