/* columns.c - tables that a person may read to the end are aligned by libsmartcols, where the build
 * has it; longer ones, and those with very wide cells, are streamed, in widths that their first
 * rows suggest. */
#include "columns.h"

#include <string.h>

#include <heft/heft_ext.h>

enum { ALIGNED_ROWS = 50000, SAMPLED_ROWS = 1000, COLUMNS_MAX = 16, PIECE = 4096, BATCH = 32 };

/* ---- rows ---- */

typedef struct rows { /* how they are printed */
    const table *t;
    size_t widths[COLUMNS_MAX]; /* unless raw */
    uint32_t first;             /* of the batch */
    outbuf out[BATCH];
} rows;

static void raw_row(outbuf *o, const table *t, uint32_t i)
{
    for (size_t c = 0; c < t->width; c++) {
        t->columns[c].cell(o, t->ctx, table_row(t, i));
        out_char(o, c + 1 < t->width ? '\t' : '\n');
    }
}

/* ---- streamed ---- */

/* Columns on a screen, near enough: characters, since escapes have taken care of the rest. */
static size_t text_width(const char *text, size_t len)
{
    size_t at = 0;
    for (uint64_t eight; len - at >= sizeof eight; at += sizeof eight) {
        memcpy(&eight, text + at, sizeof eight);
        if (eight & UINT64_C(0x8080808080808080))
            break; /* not ASCII */
    }
    size_t n = at;
    for (; at < len; at++)
        n += ((uint8_t)text[at] & 0xC0) != 0x80;
    return n;
}

/* As wide as the widest of the first cells, but for those that are wider than any screen. */
static void measure(size_t *widths, outbuf *cell, const table *t)
{
    for (size_t c = 0; c < t->width; c++)
        widths[c] = strlen(t->columns[c].title);
    uint32_t sampled = t->count > ALIGNED_ROWS ? SAMPLED_ROWS : t->count;
    for (uint32_t i = 0; i < sampled; i++)
        for (size_t c = 0; c < t->width; c++) {
            cell->used = 0;
            t->columns[c].cell(cell, t->ctx, table_row(t, i));
            size_t width = text_width(cell->buf, cell->used);
            if (width > widths[c] && width <= TABLE_WIDEST)
                widths[c] = width;
        }
}

/* The cell of column c is what o, which writes to memory, has from `from` on. */
static void pad_cell(outbuf *o, size_t from, const table *t, size_t c, size_t width)
{
    size_t len = o->used - from, used = text_width(o->buf + from, len);
    size_t pad = used < width ? width - used : 0;
    bool last = c + 1 == t->width;
    if (pad && t->columns[c].right && out_reserve(o, pad)) {
        memmove(o->buf + from + pad, o->buf + from, len);
        memset(o->buf + from, ' ', pad);
        o->used += pad;
    }
    if (!t->columns[c].right && !last)
        out_fill(o, ' ', pad);
    out_char(o, last ? '\n' : ' ');
}

static void padded_row(outbuf *o, const table *t, const size_t *widths, uint32_t i)
{
    for (size_t c = 0; c < t->width; c++) {
        size_t from = o->used;
        t->columns[c].cell(o, t->ctx, table_row(t, i));
        pad_cell(o, from, t, c, widths[c]);
    }
}

/* ---- batches: pieces of a long table, made on all threads, printed in order ---- */

static void make_piece(void *arg, size_t piece)
{
    rows *r = arg;
    outbuf *o = &r->out[piece];
    uint32_t from = r->first + (uint32_t)piece * PIECE, left = r->t->count - from;
    uint32_t to = from + (left < PIECE ? left : PIECE);
    o->used = 0;
    for (uint32_t i = from; i < to; i++) {
        if (r->t->raw)
            raw_row(o, r->t, i);
        else
            padded_row(o, r->t, r->widths, i);
    }
}

static void print_rows(outbuf *o, rows *r)
{
    heft_executor threads = heft_executor_threads(0);
    for (size_t i = 0; i < BATCH; i++)
        out_open(&r->out[i], -1);
    for (r->first = 0; r->first < r->t->count && !o->os;) {
        uint32_t left = r->t->count - r->first;
        size_t pieces = left / PIECE >= BATCH ? BATCH : (left + PIECE - 1) / PIECE;
        threads.run(threads.ctx, pieces, make_piece, r);
        for (size_t i = 0; i < pieces; i++) {
            out_bytes(o, r->out[i].buf, r->out[i].used);
            if (r->out[i].os)
                o->os = r->out[i].os;
        }
        r->first += left < BATCH * PIECE ? left : BATCH * PIECE;
    }
    for (size_t i = 0; i < BATCH; i++)
        out_free(&r->out[i]);
}

static void print_titles(outbuf *o, outbuf *room, const rows *r)
{
    room->used = 0;
    for (size_t c = 0; c < r->t->width; c++) {
        size_t from = room->used;
        out_text(room, r->t->columns[c].title);
        pad_cell(room, from, r->t, c, r->widths[c]);
    }
    term_paint(o, COLOUR_BOLD);
    out_bytes(o, room->buf, room->used);
    term_paint(o, COLOUR_NONE);
}

static void print_streamed(outbuf *o, const table *t)
{
    rows r = { .t = t };
    outbuf room;
    out_open(&room, -1);
    measure(r.widths, &room, t);
    print_titles(o, &room, &r);
    out_free(&room);
    print_rows(o, &r);
}

static void print_raw(outbuf *o, const table *t)
{
    rows r = { .t = t };
    print_rows(o, &r);
}

void table_print(outbuf *o, const table *t)
{
    if (t->raw)
        print_raw(o, t);
    else if (t->count && (t->count > ALIGNED_ROWS || !table_align(o, t)))
        print_streamed(o, t);
}
