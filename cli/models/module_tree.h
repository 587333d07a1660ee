/* module_tree.h - the modules of a model, by the components of tensor names: "layers.0.bias" is the
 * tensor "bias" of the module "0" in the module "layers". */
#ifndef HEFT_CLI_MODULE_TREE_H
#define HEFT_CLI_MODULE_TREE_H
#include "models/model.h"
#include "models/model_view.h"

enum { MODULE_DEPTH = 64 }; /* deeper components are part of the tensor's own name */

typedef struct module_member { /* a tensor, in the order of the tree */
    heft_str name;
    uint32_t id;     /* id of the tensor */
    uint32_t shared; /* number of modules shared with the member before */
} module_member;

typedef struct module_row { /* a line of the tree: a module, or a tensor */
    uint32_t first, end;    /* members of the module; of a tensor, one */
    uint16_t depth;         /* number of modules around the row */
    bool is_module;
} module_row;

typedef struct module_tree {
    module_member *members; /* sorted by name; numbers in names are compared as numbers */
    uint32_t count;
    module_row *rows; /* a module precedes its content */
    uint32_t row_count, row_capacity;
} module_tree;

/* Build the tree of the selected tensors. Modules at `depth` (0: no limit) are folded: they have no
 * rows for their content. Return false without memory, after an error line. */
bool module_tree_open(module_tree *t, const heft_file *f, const char *path, const selection *s,
                      uint64_t depth);
/* Do the same for a list of names, whose ids are their numbers. */
bool module_tree_open_names(module_tree *t, const heft_str *names, uint32_t count, const char *path,
                            uint64_t depth);
/* Build the rows again, folded at another depth. Return false without memory, after an error line
 * and after closing the tree. */
bool module_tree_fold(module_tree *t, const char *path, uint64_t depth);
/* Return the number of modules that all tensors have in common. */
uint32_t module_tree_common(const module_tree *t);
void module_tree_close(module_tree *t); /* safe on a zeroed struct */
/* Write the row's own component of the name; that of a module ends with the separator. */
void out_module(outbuf *o, const module_tree *t, const module_row *row);
/* Return the row's own component of the name, without a separator. */
heft_str module_label(const module_tree *t, const module_row *row);
/* Return the name up to the row's own component: of a module with the separator, of a tensor the
 * whole name. */
heft_str module_prefix(const module_tree *t, const module_row *row);
/* Compare two names. Numbers in names are compared as numbers. */
int name_order(heft_str a, heft_str b);

/* ---- sums of parameters and bytes over tensors ---- */

typedef struct totals {
    uint64_t tensors, parameters, bytes; /* saturated at UINT64_MAX */
} totals;

/* Add a tensor. tied: heft_tensor_find_tied()'s table, so that bytes that several tensors share
 * count once, or NULL. A tensor whose length is not known adds no bytes. */
void totals_add(totals *sum, const model_view *v, const uint32_t *tied, uint32_t id);
/* Write "12 tensors, 1.78 B parameters, 3.3 GiB"; sizes in bytes if as_bytes is set. */
void out_totals(outbuf *o, const totals *sum, bool as_bytes);
/* Write a size, in bytes if as_bytes is set. */
void out_size_or_bytes(outbuf *o, uint64_t bytes, bool as_bytes);

typedef struct type_sum { /* tensors of the same type */
    uint32_t first;       /* tensor */
    totals sum;
} type_sum;

typedef struct model_sums {
    const model_view *v;
    const uint32_t *tied; /* heft_tensor_find_tied()'s table of v->f: tied tensors count once */
    totals all;
    type_sum types[VIEW_TYPES + HEFT_DTYPES]; /* element types, then those with a scheme */
    uint32_t type_count;                      /* tensors beyond VIEW_TYPES are in no sum */
    module_tree tree; /* folded at the first modules that do not hold the whole model */
    uint32_t depth;   /* number of modules around these modules */
} model_sums;

/* Compute the sums of the tensors of the view, which must outlive them. Return false without
 * memory, after an error line. */
bool model_sums_open(model_sums *s, const model_view *v, const char *path, const uint32_t *tied);
void model_sums_close(model_sums *s);
/* Write the type of one of the sums; "untyped" for tensors without a type. */
void model_sums_put_type(outbuf *o, const model_sums *s, uint32_t type);
/* Write the lines "Parameters", "Types" and "Modules". */
void model_sums_print(outbuf *o, const model_sums *s);
/* Write the members "parameters", "by_dtype" and "modules". */
void model_sums_json(json *j, const model_sums *s);

#endif
