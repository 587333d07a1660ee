/* model_sums.h - sums of parameters and bytes over tensors, and over a model by element type and by
 * module. */
#ifndef HEFT_CLI_MODEL_SUMS_H
#define HEFT_CLI_MODEL_SUMS_H
#include "models/model.h"
#include "models/module_tree.h"

typedef struct totals {
    uint64_t tensors, parameters, bytes; /* saturated at UINT64_MAX */
} totals;

/* Add a tensor. tied: heft_tensor_find_tied()'s table, so that bytes that several tensors share
 * count once, or NULL. A tensor whose length is not known adds no bytes. */
void totals_add(totals *sum, const heft_file *f, const uint32_t *tied, uint32_t id);
/* Write "12 tensors, 1.78 B parameters, 3.3 GiB"; sizes in bytes if as_bytes is set. */
void out_totals(outbuf *o, const totals *sum, bool as_bytes);
/* Write a size, in bytes if as_bytes is set. */
void out_size_or_bytes(outbuf *o, uint64_t bytes, bool as_bytes);

typedef struct model_sums {
    const heft_file *f;
    const uint32_t *tied; /* heft_tensor_find_tied()'s table: tied tensors count once */
    totals all, of_type[HEFT_DTYPES];
    module_tree tree; /* folded at the first modules that do not hold the whole model */
    uint32_t depth;   /* number of modules around these modules */
} model_sums;

/* Compute the sums. Return false without memory, after an error line. */
bool model_sums_open(model_sums *s, const heft_file *f, const char *path, const uint32_t *tied);
void model_sums_close(model_sums *s);
/* Write the lines "Parameters", "Types" and "Modules". */
void model_sums_print(outbuf *o, const model_sums *s);
/* Write the members "parameters", "by_dtype" and "modules". */
void model_sums_json(json *j, const model_sums *s);

#endif
