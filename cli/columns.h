/* columns.h - tables: one list of columns gives the aligned form and the tab separated one. */
#ifndef HEFT_CLI_COLUMNS_H
#define HEFT_CLI_COLUMNS_H
#include "term.h"

typedef struct column {
    const char *title;
    bool right; /* aligned to the right: numbers */
    /* Text without tabs and control characters; never empty. */
    void (*cell)(outbuf *o, const void *ctx, uint32_t row);
} column;

typedef struct table {
    const column *columns;
    size_t width; /* how many columns */
    const void *ctx;
    const uint32_t *rows; /* what cell() is asked for, or NULL: 0, 1, … */
    uint32_t count;
    bool raw; /* tab separated, without titles */
} table;

void table_print(outbuf *o, const table *t);

static inline uint32_t table_row(const table *t, uint32_t i)
{
    return t->rows ? t->rows[i] : i;
}
/* Titles and rows in columns as wide as their widest cell; false: nothing was written, since this
 * build cannot, or since a cell is wider than TABLE_WIDEST and would push all others away. */
enum { TABLE_WIDEST = 120 };
bool table_align(outbuf *o, const table *t);

#endif
