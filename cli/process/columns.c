/* columns.c - print tables with columns as wide as the widest cell. The rows of a long table are
 * formatted on all threads; the widths come from a sample of the first rows. */
#include "process/columns.h"

#include <heft/heft_ext.h>

#include <pthread.h>
#include <string.h>
#include <unistd.h>
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

/* Return the number of terminal columns. The text has no control characters. */
static size_t text_width(const char *text, size_t len)
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

/* Replace the middle of o's bytes from `from` on by "…", so that at most `columns` remain. */
static void elide(outbuf *o, size_t from, size_t columns)
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

/* elide() for the text after the blanks that the bytes begin with; many blanks become fewer. */
static void elide_indented(outbuf *o, size_t from, size_t columns)
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

/* Print each row as a line with the first cell, and indented lines with titles and cells. */
static void print_stacked(outbuf *o, const table *t, size_t columns)
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

enum {
    MEASURED_ROWS = 50000, /* longest table whose cells are all measured */
    SAMPLED_ROWS = 1000,
    /* A wider cell does not widen the column and shifts only its own row. */
    WIDEST = 120,
    COLUMNS_MAX = TABLE_COLUMNS
};

/* ---- widths ---- */

static bool is_ascii(const char *p, size_t len)
{
    enum { STEP = sizeof(uint64_t) };
    uint64_t bits = 0, eight;
    size_t at = 0;
    for (; len - at >= STEP; at += STEP) {
        memcpy(&eight, p + at, STEP);
        bits |= eight;
    }
    if (at < len && len >= STEP) { /* the last step overlaps */
        memcpy(&eight, p + len - STEP, STEP);
        bits |= eight;
        at = len;
    }
    for (; at < len; at++)
        bits |= (uint8_t)p[at];
    return !(bits & UINT64_C(0x8080808080808080));
}

static size_t cell_width(const char *text, size_t len)
{
    return is_ascii(text, len) ? len : text_width(text, len);
}

/* Set each width to the widest sampled cell that is at most WIDEST columns wide. */
static void choose_widths(size_t *widths, outbuf *cell, const table *t)
{
    for (size_t c = 0; c < t->width; c++)
        widths[c] = strlen(t->columns[c].title);
    uint32_t sampled = t->count > MEASURED_ROWS ? SAMPLED_ROWS : t->count;
    for (uint32_t i = 0; i < sampled; i++) {
        table_row row = table_row_at(t, i);
        for (size_t c = 0; c < t->width; c++) {
            cell->used = 0;
            t->cell(cell, &row, t->columns[c].field);
            size_t width = cell_width(cell->buf, cell->used);
            if (width > widths[c] && width <= WIDEST)
                widths[c] = width;
        }
    }
}

/* Pad the cell of column c, which is o's bytes from `from` on and `used` terminal columns wide, and
 * append a separator. o writes to memory. */
static inline void end_cell(outbuf *o, size_t from, size_t used, const table *t, size_t c,
                            size_t width)
{
    enum { STEP = 32 }; /* spaces written at a time; the surplus is overwritten */
    bool last = c + 1 == t->width, right = t->columns[c].right;
    size_t pad = used < width && (right || !last) ? width - used : 0;
    if (!out_reserve(o, pad + STEP))
        return;
    char *cell = o->buf + from, *end = o->buf + o->used;
    if (right && pad) {
        memmove(cell + pad, cell, o->used - from);
        memset(cell, ' ', pad);
    } else {
        for (size_t at = 0; at < pad; at += STEP)
            memset(end + at, ' ', STEP);
    }
    end[pad] = last ? '\n' : ' ';
    o->used += pad + 1;
}

static inline void put_row(outbuf *o, const table *t, const size_t *widths, const table_row *row,
                           bool is_plain)
{
    for (size_t c = 0; c < t->width; c++) {
        size_t from = o->used;
        t->cell(o, row, t->columns[c].field);
        if (!c && t->name_columns && o->used - from > t->name_columns)
            elide_indented(o, from, t->name_columns);
        size_t len = o->used - from;
        end_cell(o, from, is_plain ? len : cell_width(o->buf + from, len), t, c, widths[c]);
    }
}

/* Nearly every row is ASCII, where width equals length: format first, then check the whole row. */
static void put_plain_row(outbuf *o, const table *t, const size_t *widths, const table_row *row)
{
    size_t from = o->used;
    put_row(o, t, widths, row, true);
    if (is_ascii(o->buf + from, o->used - from))
        return;
    o->used = from;
    put_row(o, t, widths, row, false);
}

static void put_padded_row(outbuf *o, const table *t, const size_t *widths, const table_row *row)
{
    term_colour colour = t->has_colour ? t->colour(row) : COLOUR_NONE;
    if (!colour) {
        put_plain_row(o, t, widths, row);
        return;
    }
    out_text(o, term_colour_code(colour));
    put_plain_row(o, t, widths, row);
    if (o->used && o->buf[o->used - 1] == '\n')
        o->used--;
    out_text(o, term_colour_code(COLOUR_NONE));
    out_char(o, '\n');
}

/* ---- pieces of a long table: made on all threads, printed in order by whichever is free ---- */

enum { CHUNK = 2048, SLOTS = 32, PREFETCH = 16 };

typedef struct rows {
    const table *t;
    const size_t *widths; /* NULL: tab-separated */
    outbuf *to;
    pthread_mutex_t lock;
    pthread_cond_t slot_freed;
    size_t slots, printed; /* capacity in chunks; chunks printed so far */
    bool is_printing;
    bool is_ready[SLOTS];
    outbuf out[SLOTS];
} rows;

/* Print the finished chunks in order. Only one thread prints at a time, including chunks that other
 * threads finish meanwhile. */
static void print_ready_chunks(rows *r, size_t chunk)
{
    pthread_mutex_lock(&r->lock);
    r->is_ready[chunk % r->slots] = true;
    bool prints = !r->is_printing;
    r->is_printing = true;
    for (size_t at; prints && r->is_ready[at = r->printed % r->slots]; r->printed++) {
        pthread_mutex_unlock(&r->lock);
        if (!r->to->os)
            out_bytes(r->to, r->out[at].buf, r->out[at].used);
        if (r->out[at].os)
            r->to->os = r->out[at].os;
        pthread_mutex_lock(&r->lock);
        r->is_ready[at] = false;
        pthread_cond_broadcast(&r->slot_freed);
    }
    r->is_printing = r->is_printing && !prints;
    pthread_mutex_unlock(&r->lock);
}

/* Format rows [from, to), at most PREFETCH. Names lie anywhere in the file, so they are
 * prefetched. */
static void format_rows(outbuf *o, const rows *r, uint32_t from, uint32_t to)
{
    table_row row[PREFETCH];
    for (uint32_t i = from; i < to; i++) {
        row[i - from] = table_row_at(r->t, i);
        __builtin_prefetch(row[i - from].tensor.name.ptr);
    }
    for (uint32_t i = 0; i < to - from; i++) {
        for (size_t c = 0; !r->widths && c < r->t->width; c++) {
            r->t->cell(o, &row[i], r->t->columns[c].field);
            out_char(o, c + 1 < r->t->width ? '\t' : '\n');
        }
        if (r->widths)
            put_padded_row(o, r->t, r->widths, &row[i]);
    }
}

static void format_chunk(void *arg, size_t chunk)
{
    rows *r = arg;
    outbuf *o = &r->out[chunk % r->slots];
    uint32_t from = (uint32_t)chunk * CHUNK, left = r->t->count - from;
    uint32_t to = from + (left < CHUNK ? left : CHUNK);
    pthread_mutex_lock(&r->lock);
    while (chunk - r->printed >= r->slots) /* the slot's previous chunk is not printed yet */
        pthread_cond_wait(&r->slot_freed, &r->lock);
    pthread_mutex_unlock(&r->lock);
    o->used = 0;
    for (uint32_t i = from; i < to; i += PREFETCH)
        format_rows(o, r, i, to - i < PREFETCH ? to : i + PREFETCH);
    print_ready_chunks(r, chunk);
}

static void print_rows(outbuf *o, const table *t, const size_t *widths)
{
    rows r = { .t = t, .widths = widths, .to = o };
    heft_executor threads = heft_executor_threads(t->threads);
    size_t chunks = t->count / CHUNK + (t->count % CHUNK > 0), slots = 2 * (size_t)threads.width;
    r.slots = slots < SLOTS ? slots : SLOTS;
    for (size_t i = 0; i < r.slots; i++)
        out_open(&r.out[i], -1);
    pthread_mutex_init(&r.lock, NULL);
    pthread_cond_init(&r.slot_freed, NULL);
    threads.run(threads.ctx, chunks, format_chunk, &r);
    pthread_cond_destroy(&r.slot_freed);
    pthread_mutex_destroy(&r.lock);
    for (size_t i = 0; i < r.slots; i++)
        out_free(&r.out[i]);
}

static void print_titles(outbuf *o, outbuf *line, const table *t, const size_t *widths)
{
    line->used = 0;
    for (size_t c = 0; c < t->width; c++) {
        size_t from = line->used;
        out_text(line, t->columns[c].title);
        end_cell(line, from, line->used - from, t, c, widths[c]);
        if (line->os)
            return;
        term_paint(o, COLOUR_BOLD);
        out_bytes(o, line->buf + from, line->used - from - 1);
        term_paint(o, COLOUR_NONE);
        out_char(o, line->buf[line->used - 1]);
    }
}

/* Return the columns by which the table is wider than the terminal. */
static size_t missing_columns(const table *t, const size_t *widths)
{
    size_t total = t->width - 1, room = term_columns(STDOUT_FILENO);
    for (size_t c = 0; c < t->width; c++)
        total += widths[c];
    return term_is_stdout() && total > room ? total - room : 0;
}

/* ---- hidden columns ---- */

typedef struct visible { /* the columns of a table that fit on the terminal */
    column columns[COLUMNS_MAX];
    uint8_t hides[COLUMNS_MAX];
    outbuf hidden; /* titles of the others, as a list */
} visible;

/* Return the column to hide next, or 0: none. */
static size_t next_hidden(const table *t)
{
    size_t next = 0;
    for (size_t c = 1; c < t->width; c++)
        next = t->hides[c] && t->hides[c] >= t->hides[next] ? c : next;
    return next;
}

/* Hide columns until names have room. */
static void hide_columns(table *t, size_t *widths, visible *v)
{
    enum { COMFORTABLE = 20 }; /* terminal columns of a name */
    out_open(&v->hidden, -1);
    if (!t->hides)
        return;
    memcpy(v->columns, t->columns, t->width * sizeof *v->columns);
    memcpy(v->hides, t->hides, t->width);
    t->columns = v->columns;
    t->hides = v->hides;
    v->hides[0] = 0;
    size_t name = widths[0] < COMFORTABLE ? widths[0] : COMFORTABLE, missing, c;
    while ((missing = missing_columns(t, widths)) > widths[0] - name && (c = next_hidden(t)) != 0) {
        size_t after = t->width-- - c - 1;
        out_format(&v->hidden, "%s%s", v->hidden.used ? ", " : "", v->columns[c].title);
        memmove(&v->columns[c], &v->columns[c + 1], after * sizeof *v->columns);
        memmove(&v->hides[c], &v->hides[c + 1], after);
        memmove(&widths[c], &widths[c + 1], after * sizeof *widths);
    }
}

static void print_hidden(outbuf *o, visible *v)
{
    outbuf text;
    out_open(&text, -1);
    out_format(&text, "Hidden, as the terminal is narrow: %s",
               v->hidden.used ? out_cstr(&v->hidden) : "");
    if (v->hidden.used)
        out_wrapped(o, out_cstr(&text), 0, 0, term_columns(STDOUT_FILENO));
    out_free(&text);
    out_free(&v->hidden);
}

void table_print(outbuf *o, const table *given)
{
    size_t widths[COLUMNS_MAX];
    outbuf line;
    table t = *given;
    if (t.raw)
        print_rows(o, &t, NULL);
    if (t.raw || !t.count)
        return;
    visible v;
    t.has_colour = t.colour && term_has_colour(o->fd);
    out_open(&line, -1);
    choose_widths(widths, &line, &t);
    hide_columns(&t, widths, &v);
    size_t missing = missing_columns(&t, widths);
    bool is_stacked = missing && widths[0] < SHORTEST_NAME + missing;
    if (missing && !is_stacked)
        widths[0] = t.name_columns = widths[0] - missing;
    if (!is_stacked)
        print_titles(o, &line, &t, widths);
    o->os = line.os ? line.os : o->os;
    out_free(&line);
    if (is_stacked)
        print_stacked(o, &t, term_columns(STDOUT_FILENO));
    else
        print_rows(o, &t, widths);
    print_hidden(o, &v);
}
