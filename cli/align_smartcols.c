/* align_smartcols.c - a table by libsmartcols, which knows how wide characters are. */
#include <libsmartcols.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"

static bool add_columns(struct libscols_table *s, const table *t)
{
    for (size_t c = 0; c < t->width; c++) {
        int flags = t->columns[c].right ? SCOLS_FL_RIGHT : 0;
        struct libscols_column *col = scols_table_new_column(s, t->columns[c].title, 0, flags);
        if (!col || scols_cell_set_color(scols_column_get_header(col), "bold"))
            return false;
    }
    return true;
}

static bool add_row(struct libscols_table *s, outbuf *cell, const table *t, const table_row *row)
{
    struct libscols_line *line = scols_table_new_line(s, NULL);
    for (size_t c = 0; c < t->width; c++) {
        cell->used = 0;
        t->cell(cell, row, t->columns[c].what);
        if (!line || cell->used > TABLE_WIDEST || scols_line_set_data(line, c, out_cstr(cell)))
            return false;
    }
    return !cell->os;
}

static bool add_rows(struct libscols_table *s, const table *t)
{
    bool ok = true;
    outbuf cell;
    out_open(&cell, -1);
    for (uint32_t i = 0; i < t->count && ok; i++) {
        table_row row = table_row_at(t, i);
        ok = add_row(s, &cell, t, &row);
    }
    out_free(&cell);
    return ok;
}

/* Whether the text at *p, in this line, goes on with that of the cell; moves *p behind it. */
static bool goes_on(const char **p, const char *end, const char *cell, size_t len)
{
    const char *found = memmem(*p, (size_t)(end - *p), cell, len);
    *p = found ? found + len : end;
    return found;
}

static const char *end_of_line(const char *p)
{
    return p + strcspn(p, "\n");
}

/* Whether nothing is missing: out of memory, the library leaves cells blank and does not say so. */
static bool is_complete(const char *p, const table *t)
{
    bool is = true;
    outbuf cell;
    for (size_t c = 0; c < t->width; c++)
        is = is && goes_on(&p, end_of_line(p), t->columns[c].title, strlen(t->columns[c].title));
    out_open(&cell, -1);
    for (uint32_t i = 0; i < t->count && is; i++) {
        table_row row = table_row_at(t, i);
        p = end_of_line(p);
        p += *p == '\n';
        for (size_t c = 0; c < t->width && is; c++) {
            cell.used = 0;
            t->cell(&cell, &row, t->columns[c].what);
            is = !cell.os && goes_on(&p, end_of_line(p), cell.buf, cell.used);
        }
    }
    out_free(&cell);
    return is;
}

static bool print(char **text, struct libscols_table *s, bool colours, const table *t)
{
    if (!add_columns(s, t) || !add_rows(s, t))
        return false;
    scols_table_enable_colors(s, colours);
    scols_table_enable_noencoding(s, 1); /* cells are escaped already */
    scols_table_set_termforce(s, SCOLS_TERMFORCE_NEVER);
    return !scols_print_table_to_string(s, text) && *text;
}

bool table_align(outbuf *o, const table *t)
{
    char *text = NULL;
    struct libscols_table *s = scols_new_table();
    bool ok = s && print(&text, s, term_has_colour(o->fd), t) && is_complete(text, t);
    if (ok) {
        out_text(o, text);
        out_char(o, '\n');
    }
    free(text);
    scols_unref_table(s);
    return ok;
}
