/* diff_table.h - print a comparison as a table: a line for each tensor, or each module, that
 * differs. */
#ifndef HEFT_CLI_DIFF_TABLE_H
#define HEFT_CLI_DIFF_TABLE_H
#include "models/model.h"
#include "text/jsonout.h"
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

/* ---- compare the metadata of two files, key by key ---- */

typedef struct metadata_change { /* a key whose values differ */
    uint32_t a, b;               /* values of the files, or HEFT_NONE: the file lacks the key */
} metadata_change;

typedef struct metadata_diff {
    const heft_file *a, *b;
    metadata_change *changes; /* sorted by key */
    uint32_t count;
    /* There is no change, except that files of different formats or generations have different
     * keys: none stores all that another can. */
    bool equal;
} metadata_diff;

/* Compare. Keys that describe the file instead of the model do not count: safetensors' "format",
 * the alignment and the numbers of shards of GGUF. Return an exit code. */
int metadata_diff_find(metadata_diff *d, const heft_file *a, const heft_file *b, const char *path);
/* Print a line for each change, at most `most`. */
void metadata_diff_print(outbuf *o, const metadata_diff *d, uint32_t most);
/* Write the member "metadata". */
void metadata_diff_json(json *j, const metadata_diff *d);
void metadata_diff_free(metadata_diff *d); /* safe on a zeroed struct */

#endif
