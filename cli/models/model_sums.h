/* model_sums.h - sums of parameters and bytes over tensors, and over a model by element type and by
 * module. */
#ifndef HEFT_CLI_MODEL_SUMS_H
#define HEFT_CLI_MODEL_SUMS_H
#include "models/model_view.h"
#include "models/module_tree.h"

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
