/* columns.h - tables: one list of columns gives the aligned form and the tab separated one. */
#ifndef HEFT_CLI_COLUMNS_H
#define HEFT_CLI_COLUMNS_H
#include "term.h"

typedef struct table_row { /* what a cell is asked about */
    const void *ctx;
    uint32_t id;
    heft_tensor tensor; /* in a table of tensors */
} table_row;

typedef struct column {
    const char *title;
    bool right; /* aligned to the right: numbers */
    int field;  /* as the table's function for cells knows it */
} column;

typedef struct table {
    const column *columns;
    size_t width; /* how many columns */
    /* Text without tabs and control characters; never empty. */
    void (*cell)(outbuf *o, const table_row *row, int field);
    const void *ctx;
    const heft_file *tensors_of; /* whose tensors the rows are, or NULL */
    const uint32_t *rows;        /* their ids, or NULL: 0, 1, … */
    uint32_t count;
    bool raw; /* tab separated, without titles */
} table;

void table_print(outbuf *o, const table *t);

static inline table_row table_row_at(const table *t, uint32_t i)
{
    table_row row = { .ctx = t->ctx, .id = t->rows ? t->rows[i] : i };
    if (t->tensors_of)
        row.tensor = heft_tensor_at(t->tensors_of, row.id);
    return row;
}

#endif
