/* blending.h - settings of a blend, values for tensors, and the plan that src/combine computes.
 *
 * blend_settings.c reads settings, blend_number.c their numbers, blend_values.c says what holds for
 * a tensor, blend_plan.c finds the tensors, blend_measure.c reads whole tensors for what the
 * formulas need, and blend_strips.c has the formulas.  docs/blend.md is their specification. */
#ifndef HEFT_BLENDING_H
#define HEFT_BLENDING_H
#include <heft/blend.h>
#include <heft/companion.h>

#include "combine/combine.h"

enum { HEFT_BLEND_MODELS = 64, HEFT_BLEND_PREFIXES = 64, HEFT_BLEND_IGNORED = 16 };

/* ---- settings ----------------------------------------------------------------------------- */

typedef enum heft_blend_parameter {
    HEFT_BLEND_WEIGHT,
    HEFT_BLEND_DENSITY,
    HEFT_BLEND_T,
    HEFT_BLEND_LAMBDA,
    HEFT_BLEND_NORMALIZE,
    HEFT_BLEND_RESCALE,
    HEFT_BLEND_PARAMETERS
} heft_blend_parameter;

typedef struct heft_blend_method {
    const char *name;
    bool has_deltas;   /* sums differences to the base */
    bool is_slerp;     /* interpolates on a sphere between two models */
    bool trims;        /* keeps the largest differences */
    bool drops;        /* keeps differences at random */
    bool has_election; /* differences against the sign of the sum are left out */
    bool normalizes;   /* by default */
} heft_blend_method;

typedef struct heft_blend_rule {
    heft_str filter;       /* empty: all tensors */
    uint32_t first, count; /* range of heft_blend_settings.numbers; more than one: by layer */
} heft_blend_rule;

typedef struct heft_blend_rules { /* rules for a parameter, given with a model or for all */
    uint32_t first, count;        /* range of heft_blend_settings.rules */
} heft_blend_rules;

typedef struct heft_blend_model {
    heft_str name;
    bool is_listed; /* false: it is the base, and not among the models that are blended */
    heft_blend_rules rules[HEFT_BLEND_PARAMETERS];
} heft_blend_model;

typedef struct heft_blend_tie {
    heft_str name, other; /* `other` is read if `name` is missing */
} heft_blend_tie;

typedef enum heft_blend_missing {
    HEFT_BLEND_MISSING_ERROR,
    HEFT_BLEND_MISSING_BASE,   /* the tensor is that of the base */
    HEFT_BLEND_MISSING_PRESENT /* the models that have the tensor are blended */
} heft_blend_missing;

struct heft_blend_settings {
    heft_settings *json; /* texts are borrowed from it */
    heft_memory mem;
    heft_vec numbers; /* double */
    heft_vec rules;   /* heft_blend_rule */
    heft_vec ties;    /* heft_blend_tie */
    const heft_blend_method *method;
    heft_blend_model model[HEFT_BLEND_MODELS];
    uint32_t model_count, base; /* base HEFT_NONE while reading: none is named */
    heft_blend_rules common[HEFT_BLEND_PARAMETERS];
    heft_dtype dtype; /* result of blending; HEFT_UNTYPED: that of the base */
    uint64_t seed;
    heft_blend_missing missing;
    bool may_untie;
    uint64_t slice_layers; /* layers of the slice; 0: there is none */
    heft_str ignored[HEFT_BLEND_IGNORED];
    uint32_t ignored_count;
};

/* Read a decimal number, rounded to nearest; false for other text, more than 19 digits, and powers
 * of ten beyond 10^22. */
bool heft_blend_number(double *out, heft_str text);

/* ---- values for a tensor ------------------------------------------------------------------ */

typedef struct heft_blend_layers { /* numbers of layers, by what precedes the number in names */
    heft_str prefix[HEFT_BLEND_PREFIXES];
    uint64_t count[HEFT_BLEND_PREFIXES];
    uint32_t prefixes;
} heft_blend_layers;

/* Find the numbers of layers in the names of the tensors. */
heft_status heft_blend_count_layers(heft_blend_layers *l, const heft_file *f, heft_error *err);
/* Set *out to the parameter of a model (HEFT_NONE: of all models) for the tensor. */
heft_status heft_blend_value(double *out, const heft_blend_settings *s, uint32_t model,
                             heft_blend_parameter p, heft_str tensor, const heft_blend_layers *l,
                             heft_error *err);
/* Mark the rules, by their numbers, that are the first to match a tensor. */
void heft_blend_mark_used(uint8_t *is_used, const heft_blend_settings *s, heft_str tensor);

/* ---- the plan ----------------------------------------------------------------------------- */

typedef struct heft_blend_input {
    heft_combine_input in;
    uint32_t model;
    float weight;
    double density;
    /* Elements with magnitudes above that of these bits are kept, and equal ones up to `last`. */
    uint32_t least;
    uint64_t last;
    uint64_t key; /* generator's state */
} heft_blend_input;

typedef struct heft_blend_tensor {
    uint32_t place;
    heft_dtype dtype;
    uint32_t first, count; /* range of heft_blend.inputs */
    heft_combine_input base;
    float lambda, weights; /* factor; sum of the weights, if they are normalised */
    bool normalizes, rescales;
    double t;
    float share[2]; /* slerp: of the base, of the other model */
} heft_blend_tensor;

struct heft_blend {
    const heft_blend_settings *s;
    const heft_file *files[HEFT_BLEND_MODELS]; /* by model */
    const heft_file *base;
    heft_blend_options opt;
    heft_memory mem;
    heft_vec inputs;                   /* heft_blend_input */
    heft_vec tensors;                  /* heft_blend_tensor */
    uint32_t *blended;                 /* by tensor of the base: 1 + number in tensors, or 0 */
    uint32_t *tied[HEFT_BLEND_MODELS]; /* by tensor of each model: the first with its bytes */
    uint32_t most_inputs;
    heft_blend_layers layers;
    heft_combine_ops ops;
    heft_file *out;
    heft_error *err;
};

static inline heft_blend_input *heft_blend_inputs(const heft_blend *b, const heft_blend_tensor *t)
{
    return (heft_blend_input *)b->inputs.ptr + t->first;
}

/* blend_measure.c: read what the formulas need of whole tensors, on all threads. */
heft_status heft_blend_measure(heft_blend *b);
/* Return a key of the generator for a tensor and a model. */
uint64_t heft_blend_key(uint64_t seed, heft_str tensor, uint32_t model);
/* Return whether the generator keeps the element. */
bool heft_blend_keeps(uint64_t key, uint64_t element, double density);
/* Set the shares of slerp for the cosine of the angle. */
void heft_blend_slerp(float share[2], double cosine, double t);

/* blend_strips.c: set b->ops. */
void heft_blend_set_ops(heft_blend *b);

#endif
