/* diff_table.h - print a comparison as a table: a line for each tensor, or each module, that
 * differs. */
#ifndef HEFT_CLI_DIFF_TABLE_H
#define HEFT_CLI_DIFF_TABLE_H
#include "models/model.h"
#include "values/comparison.h"

typedef struct diff_style {
    const char *sort; /* --sort, or NULL: the order of the files */
    uint64_t limit;   /* --limit: most rows; 0: all */
    uint64_t depth;   /* --depth: modules at this depth of the tree are folded; 0: none */
    bool tree;        /* --tree: show the modules */
    bool raw;         /* --raw: tab-separated, without titles */
    bool lossy;       /* only the values of quantised tensors; no line says how many are left out */
    bool equal;       /* --verbose: also show equal tensors */
} diff_style;

/* Refuse options that exclude each other. Return an exit code. */
int diff_style_check(const diff_style *s);
/* Print the table. Return an exit code. */
int diff_table_print(outbuf *o, const comparison *c, const diff_style *s);
/* After the table of many tensors of which one side is quantised, print the worst of them. Return
 * an exit code. */
int diff_table_print_worst(outbuf *o, const comparison *c, const diff_style *s);
/* Store the position of the first difference: in the shape of the tensor, in the list of all
 * compared elements, or in the bytes. Return the number of dimensions. */
uint32_t diff_first_position(uint64_t at[POSITION_RANK], const comparison *c, const pair *p);

#endif
