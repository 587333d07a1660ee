/* columns.h - tables that print aligned or tab-separated from a list of columns. On a terminal that
 * is too narrow, columns are hidden and named below the table, names are elided, or each row takes
 * several lines. */
#ifndef HEFT_CLI_COLUMNS_H
#define HEFT_CLI_COLUMNS_H
#include "process/term.h"

typedef struct table_row { /* argument of a cell function */
    const void *ctx;
    uint32_t id;
    heft_tensor tensor; /* set in tables of tensors */
} table_row;

typedef struct column {
    const char *title;
    bool right; /* right-aligned, for numbers */
    int field;  /* passed to the cell function */
} column;

enum { TABLE_COLUMNS = 24 }; /* at most */

typedef struct table {
    const column *columns;
    size_t width; /* number of columns */
    /* Write one cell: text without tabs and control characters, never empty. */
    void (*cell)(outbuf *o, const table_row *row, int field);
    const void *ctx;
    const heft_file *tensors_of; /* file whose tensors are the rows, or NULL */
    const uint32_t *rows;        /* ids of the rows; NULL: 0, 1, ... */
    uint32_t count;
    uint32_t threads; /* 0: one for each processor */
    bool raw;         /* tab-separated, without titles */
    /* Per column, in which order columns are hidden on a narrow terminal: the greatest first, 0
     * never. NULL: none is hidden. */
    const uint8_t *hides;
    term_colour (*colour)(const table_row *row); /* the colour of a row; NULL: none */
    bool has_colour;                             /* set by table_print() */
    size_t name_columns; /* longer cells of the first column are elided; 0: none. table_print() sets
                            this for a narrow terminal */
} table;

void table_print(outbuf *o, const table *given);

static inline table_row table_row_at(const table *t, uint32_t i)
{
    table_row row = { .ctx = t->ctx, .id = t->rows ? t->rows[i] : i };
    if (t->tensors_of)
        row.tensor = heft_tensor_at(t->tensors_of, row.id);
    return row;
}

/* ---- tables on a terminal that is narrower than the table ---- */

enum { SHORTEST_NAME = 16 }; /* columns that names keep; below, rows are stacked */

/* Write words so that no line is wider than `width`, and a newline. The text begins at column `at`
 * and further lines begin at `indent`. */
void out_wrapped(outbuf *o, const char *text, size_t at, size_t indent, size_t width);

#endif
