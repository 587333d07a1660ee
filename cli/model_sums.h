/* model_sums.h - sums of parameters and bytes over a model, by element type and by module. */
#ifndef HEFT_CLI_MODEL_SUMS_H
#define HEFT_CLI_MODEL_SUMS_H
#include "module_tree.h"
#include "totals.h"

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
