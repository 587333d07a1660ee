/* lora.h - adapters (LoRA) merged into the model for which they were trained.  The general rules of
 * heft.h apply.
 *
 * An adapter has for a weight W two small matrices: B (rows x rank) and A (rank x columns).  The
 * merged weight is W + scale * (B @ A).  Merging gives a file like any other: the weights are
 * computed strip by strip when they are read, in f32, and rounded once to the type of W.
 *
 * The order of sums is stated, so that results are the same everywhere, whatever the number of
 * threads: an element of B @ A is the sum of its products from rank 0 on, begun with 0, each
 * product and each sum rounded to f32; the sum is multiplied by the scale, and added to W.
 * Adapters are applied one after the other.
 *
 * Stability: provisional. */
#ifndef HEFT_LORA_H
#define HEFT_LORA_H
#include <heft/companion.h>
#include <heft/write.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- merged models ------------------------------------------------------------------------ */

/* An adapter.  Tensors have the names of PEFT, of diffusers, of kohya's scripts or of ComfyUI. */
typedef struct heft_lora_adapter {
    const heft_file *f;
    /* adapter_config.json, which PEFT writes beside the tensors; NULL: none. */
    const heft_settings *config;
    double scale; /* factor of the whole adapter, usually 1 */
} heft_lora_adapter;

typedef struct heft_lora_options {
    size_t size;          /* = sizeof(heft_lora_options) */
    bool verify;          /* compare the stored checksums of what is merged, by reading it */
    bool allow_unmatched; /* tensors of adapters that match nothing are left out */
    bool allow_nan;       /* results that are not finite are kept */
    /* Round scale * (B @ A) to the type of B, if that is f16 or bf16, before it is added: what PEFT
     * does on a processor. */
    bool peft_rounding;
    /* Element type of results in place of block types of GGUF, f32, f16 or bf16; HEFT_UNTYPED: such
     * weights are refused. */
    heft_dtype block_type;
    uint8_t reserved[26]; /* 0; for further choices */
    /* Called for each tensor of adapter number `adapter` that matches nothing, with allow_unmatched
     * too; or NULL. */
    void (*on_unmatched)(void *ctx, uint32_t adapter, heft_str name);
    void *ctx;
    /* Called for each pattern in `map` of the settings of adapter number `adapter`, "rank_pattern"
     * or "alpha_pattern", that names no module of the adapter; or NULL. */
    void (*on_pattern)(void *ctx, uint32_t adapter, const char *map, heft_str pattern);
    /* Return another name for a tensor of the base, such as that of another framework, by which
     * adapters may call it; ptr NULL: it has none.  Copied.  NULL: there are no other names. */
    heft_str (*other_name)(void *ctx, uint32_t tensor);
} heft_lora_options;
#define HEFT_LORA_OPTIONS_INIT                                                                  \
    {                                                                                           \
        sizeof(heft_lora_options), false, false, false, false, HEFT_UNTYPED, { 0 }, NULL, NULL, \
            NULL, NULL                                                                          \
    }

/* A model with adapters. */
typedef struct heft_lora heft_lora;
/* Merge adapters into `base`, in their order.  base: quantised weights must be decoded first
 * (heft_schemes_decode()).  All files must outlive the object; settings need not.
 *   HEFT_E_ARGUMENT     a scale is not finite
 *   HEFT_E_FORMAT       the adapter is for another model: the first shape that differs; a matrix is
 *                       missing; a rank contradicts the config; the config is wrong
 *   HEFT_E_NOTFOUND     a tensor matches nothing (rule "heft/unmatched"), and allow_unmatched is
 *                       not set
 *   HEFT_E_UNSUPPORTED  another method than LoRA; a weight that f32 does not represent: integers,
 *                       f64
 * Reading a merged weight fails with HEFT_E_LOSSY (rule "heft/not-finite") if a number is NaN or
 * infinite, or too large for its type. */
HEFT_API HEFT_MUST_CHECK heft_status heft_lora_open(heft_lora **out, const heft_file *base,
                                                    const heft_lora_adapter *adapters,
                                                    uint32_t count, const heft_lora_options *opt,
                                                    heft_error *err);
/* Close the object and its file.  NULL is ignored. */
HEFT_API void heft_lora_close(heft_lora *l);
/* Return the merged model: names, order and metadata are those of the base.  Borrowed. */
HEFT_API const heft_file *heft_lora_file(const heft_lora *l);

/* A change of a tensor by an adapter. */
typedef struct heft_lora_item {
    heft_str name;    /* tensor of the model; borrowed from the object */
    uint32_t adapter; /* its number */
    const char
        *how;      /* "product", "convolution", "experts", "DoRA", "bias", "difference", "replaced".
                       * Static. */
    uint32_t rank; /* 0: no product */
    double scale;  /* factor of the product: alpha, rank and the scale of the adapter */
    uint64_t reserved[2]; /* 0 */
} heft_lora_item;
/* Return the number of items: in the order of the tensors, for each in the order of adapters. */
HEFT_API uint32_t heft_lora_count(const heft_lora *l);
/* Return item i; how is NULL past the last. */
HEFT_API heft_lora_item heft_lora_at(const heft_lora *l, uint32_t i);

/* ---- adapters made of two models ---------------------------------------------------------- */

typedef struct heft_extract_options {
    size_t size;          /* = sizeof(heft_extract_options) */
    uint32_t rank;        /* weights with less rows or columns have a smaller one */
    bool verify;          /* compare the stored checksums of weights first, by reading them */
    uint64_t seed;        /* number from which the random numbers follow */
    heft_str base_name;   /* base_model_name_or_path in the settings; may be empty */
    uint64_t reserved[4]; /* 0; for further choices */
} heft_extract_options;
#define HEFT_EXTRACT_OPTIONS_INIT                                \
    {                                                            \
        sizeof(heft_extract_options), 16, false, 0, { NULL, 0 }, \
        {                                                        \
            0                                                    \
        }                                                        \
    }

/* An adapter that leads from one model to another. */
typedef struct heft_extraction heft_extraction;
/* Make an adapter of the difference of two models with the same names: for each weight with two
 * dimensions that differs, the product of two matrices that is nearest to the difference, by
 * subspace iteration.  The models are compared now; the matrices are computed when they are read,
 * and are the same for the same seed.  Both files must outlive the object.
 *   HEFT_E_ARGUMENT     the rank is 0, or above 4096
 *   HEFT_E_NOTFOUND     no weight differs
 *   HEFT_E_UNSUPPORTED  a weight that differs is quantised, or f32 does not represent it */
HEFT_API HEFT_MUST_CHECK heft_status heft_extraction_open(heft_extraction **out,
                                                          const heft_file *base,
                                                          const heft_file *tuned,
                                                          const heft_extract_options *opt,
                                                          heft_error *err);
/* Close the object and its file.  NULL is ignored. */
HEFT_API void heft_extraction_close(heft_extraction *x);
/* Return the adapter: tensors of f32 with the names of PEFT, for adapter_model.safetensors. */
HEFT_API const heft_file *heft_extraction_file(const heft_extraction *x);
/* Make the text of adapter_config.json; the caller frees it with heft_blob_free(). */
HEFT_API HEFT_MUST_CHECK heft_status heft_extraction_config(heft_blob *out,
                                                            const heft_extraction *x,
                                                            heft_error *err);

/* A tensor that differs. */
typedef struct heft_extracted {
    heft_str name;      /* borrowed from the tuned model */
    const char *reason; /* why it is not in the adapter, "not a matrix"; NULL: it is.  Static. */
    uint32_t rank;
    bool is_known; /* its matrices were computed, and the numbers below are known */
    /* The Frobenius norm of the difference, and of what the product leaves of it. */
    double difference, remainder;
    uint64_t reserved[2]; /* 0 */
} heft_extracted;
/* Return the number of tensors that differ, or that only one of the models has. */
HEFT_API uint32_t heft_extraction_count(const heft_extraction *x);
/* Return tensor i; name.ptr is NULL past the last. */
HEFT_API heft_extracted heft_extraction_at(const heft_extraction *x, uint32_t i);

#ifdef __cplusplus
}
#endif
#endif
