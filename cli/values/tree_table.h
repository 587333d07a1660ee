/* tree_table.h - print the tensors of a model as a tree of modules with sums. */
#ifndef HEFT_CLI_TREE_TABLE_H
#define HEFT_CLI_TREE_TABLE_H
#include "models/model_view.h"
#include "models/module_tree.h"

typedef struct tree_style {
    uint64_t depth; /* modules at this depth are folded; 0: none */
    bool raw;       /* tab-separated, with whole names */
    bool bytes;     /* sizes in bytes */
    uint32_t threads;
} tree_style;

/* Print the tree of the selected tensors. Return false without memory, after an error line. */
bool tree_table_print(outbuf *o, const model_view *v, const char *path, const selection *s,
                      const tree_style *style);

#endif
