/* merging.h - adapters while they are merged.
 *
 * This folder knows what adapters look like (lora_names.c, lora_config.c), finds the tensors that
 * they change (lora_modules.c, lora_match.c), checks the shapes (lora_plan.c), and computes merged
 * weights (lora_compute.c); src/combine makes a file of them. */
#ifndef HEFT_LORA_MERGING_H
#define HEFT_LORA_MERGING_H
#include <heft/lora.h>

#include "combine/combine.h"
#include "lora/lora_names.h"
#include "lora/lora_patterns.h"
#include "model/names.h"

/* ---- the settings of PEFT ---- */

typedef struct heft_lora_config {
    const heft_settings *settings; /* adapter_config.json; NULL: the adapter has none */
    heft_settings *metadata;       /* what diffusers writes into the metadata; or NULL */
    double rank, alpha;
    bool has_rank, has_alpha;
    bool use_rslora, use_dora, fan_in_fan_out;
    heft_lora_patterns ranks, alphas; /* The settings have them. */
    uint64_t *work;                   /* Comparisons with patterns may cost as much. */
} heft_lora_config;
/* Read the settings, and those in the metadata of the file.  The memory and `work` are borrowed.
 * Call heft_lora_config_free() whatever is returned.
 *   HEFT_E_UNSUPPORTED  another method than LoRA */
heft_status heft_lora_config_read(heft_lora_config *out, const heft_lora_adapter *a, heft_memory *m,
                                  uint64_t *work, heft_error *err);
void heft_lora_config_free(heft_lora_config *c);
/* Find what the metadata say of the alpha of a module: diffusers by component, llama.cpp of all.
 * *use_rslora is set where they say so.  Return false if they say nothing. */
bool heft_lora_config_in_file(const heft_lora_config *c, const heft_file *f, heft_str module,
                              double *alpha, bool *use_rslora);
/* Set the rank and alpha of a module, by the patterns of the settings. */
void heft_lora_config_of(const heft_lora_config *c, heft_str module, double *rank, double *alpha);
/* Return HEFT_E_LIMIT if comparisons with patterns have cost too much, and were not made. */
heft_status heft_lora_config_check(const heft_lora_config *c, heft_error *err);

/* ---- the modules of an adapter ---- */

typedef struct heft_lora_module {
    heft_str name; /* names of the tensors without the suffix; the name of a whole tensor */
    bool is_flat, is_whole;
    uint32_t part[HEFT_LORA_ROLES]; /* tensor of the adapter, or HEFT_NONE; whole: the first */
} heft_lora_module;

typedef struct heft_lora_modules {
    heft_vec all; /* heft_lora_module */
    heft_names names;
} heft_lora_modules;
/* Group the tensors of an adapter.
 *   HEFT_E_UNSUPPORTED  another method than LoRA
 *   HEFT_E_FORMAT       two tensors have one role, or a partner is missing */
heft_status heft_lora_modules_read(heft_lora_modules *out, heft_memory *m, const heft_file *f,
                                   heft_error *err);
void heft_lora_modules_free(heft_lora_modules *s, heft_memory *m);
/* Call o->on_pattern for the patterns of the settings that name no module. */
void heft_lora_config_report(heft_lora_config *c, const heft_lora_modules *modules,
                             const heft_lora_options *o, uint32_t adapter);

/* ---- tensors of the base, by the names of modules ---- */

typedef struct heft_lora_base {
    const heft_file *f;
    heft_memory *mem;
    heft_arena *arena;
    const heft_lora_options *opt;
    heft_str *others; /* by tensor: another name, or empty; NULL: there are none */
    heft_names other_names;
    /* By tensor, and once more by tensor for other names: its module with underscores; NULL: not
     * needed yet. */
    heft_str *flat;
    uint8_t *is_shared; /* by flat name: another tensor has the same, so that none is meant */
    heft_names flat_names;
    char *text; /* memory for a name */
    size_t text_bytes;
} heft_lora_base;
/* Take the other names of all tensors; false: out of memory. */
bool heft_lora_base_open(heft_lora_base *b);
/* Find the tensor of a module, with `suffix` after its name; HEFT_NONE: there is none.  *no_memory
 * is set when there is too little. */
uint32_t heft_lora_base_find(heft_lora_base *b, heft_str module, bool is_flat, const char *suffix,
                             bool *no_memory);
void heft_lora_base_free(heft_lora_base *b);

/* ---- what is done to a tensor ---- */

enum { HEFT_LORA_MAGNITUDES = 16 }; /* most steps of a tensor with magnitudes */

/* A matrix in a tensor. A number of it is element base + e * matrix + i * row + k * column. */
typedef struct heft_lora_view {
    heft_combine_input in;
    const float *memory; /* instead of the input, row by row; or NULL */
    uint64_t matrix, row, column;
} heft_lora_view;

typedef struct heft_lora_step {
    uint32_t adapter;
    const char *how;
    heft_lora_view left, right; /* rows x rank, rank x columns, for each matrix of a stack */
    uint32_t rank;              /* 0: `left.in` has the numbers themselves */
    double scale;
    bool replaces;                /* the numbers instead of those before */
    heft_dtype round_to;          /* type to which the product is rounded first, or HEFT_UNTYPED */
    heft_combine_input magnitude; /* f NULL: none */
    uint32_t next;                /* step of the same tensor, or HEFT_NONE */
} heft_lora_step;

typedef struct heft_lora_target { /* a computed tensor */
    heft_str name;
    uint32_t tensor;         /* number in the base */
    heft_combine_input base; /* f NULL: replaced or added */
    heft_dtype dtype;
    uint32_t rank;
    const uint64_t *dims;
    uint64_t stack, rows, columns;
    uint32_t first, last; /* steps */
} heft_lora_target;

struct heft_lora {
    const heft_file *base;
    heft_lora_options opt;
    heft_memory mem;
    heft_arena arena;
    heft_vec steps;      /* heft_lora_step */
    heft_vec targets;    /* heft_lora_target, by tensor of the base */
    heft_vec items;      /* heft_lora_item */
    uint32_t *target_of; /* by tensor of the base: 1 + its target, or 0 */
    heft_file *out;
    heft_error *err;
};

static inline heft_lora_step *heft_lora_step_at(const heft_lora *l, uint32_t i)
{
    return (heft_lora_step *)l->steps.ptr + i;
}
static inline heft_lora_target *heft_lora_target_at(const heft_lora *l, uint32_t i)
{
    return (heft_lora_target *)l->targets.ptr + i;
}

/* Return the number of an adapter for heft_error.input: the base is the first. */
static inline uint32_t heft_lora_input(uint32_t adapter)
{
    return HEFT_INPUT_SECOND + adapter;
}
/* Return the square root of a number of f64, to the last digits. */
double heft_lora_square_root(double x);
/* Add the steps of an adapter; lora_plan.c. */
heft_status heft_lora_plan(heft_lora *l, const heft_lora_adapter *a, uint32_t number,
                           heft_lora_base *base);
/* The functions that compute merged tensors; ctx is a heft_lora, which the source does not own. */
extern const heft_combine_ops heft_lora_ops;

#endif
