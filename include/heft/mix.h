/* mix.h - quantise a model to block types of GGUF: which type each tensor gets, and how much each
 * column counts.  The general rules of heft.h apply.
 *
 * A mix is a set of rules with a name of llama.cpp, such as "q4_k_m".  heft_mix_open() applies the
 * rules to the tensors of a model, whose names must be those of ggml ("blk.0.attn_v.weight"); the
 * resulting types are casts of a conversion.  docs/quantisation.md lists mixes and rules.
 *
 * Stability: provisional. */
#ifndef HEFT_MIX_H
#define HEFT_MIX_H
#include <heft/heft.h>

#ifdef __cplusplus
extern "C" {
#endif
/* ---- importance --------------------------------------------------------------------------- */

/* The importance of the columns of weights, measured by llama-imatrix.  Several threads may use an
 * object at the same time. */
typedef struct heft_importance heft_importance;
/* Read the importance in a GGUF file of the type "imatrix".  f need not outlive the object.
 *   HEFT_E_FORMAT  a tensor is missing or has another type or shape, or a number is NaN, infinite
 *                  or below 0 */
HEFT_API HEFT_MUST_CHECK heft_status heft_importance_open(heft_importance **out, const heft_file *f,
                                                          heft_error *err);
/* Read the importance in the bytes of a file "imatrix.dat", the form before GGUF.  host: NULL for
 * the default. */
HEFT_API HEFT_MUST_CHECK heft_status heft_importance_read(heft_importance **out, const void *data,
                                                          size_t size, const heft_host *host,
                                                          heft_error *err);
/* Close the object.  NULL is ignored. */
HEFT_API void heft_importance_close(heft_importance *m);
/* Return the number of weights. */
HEFT_API uint32_t heft_importance_count(const heft_importance *m);
/* Return the numbers of a weight, and their count: for each of its matrices one for each column.
 * NULL: there are none for the weight.  Borrowed from the object. */
HEFT_API const float *heft_importance_find(uint64_t *count, const heft_importance *m,
                                           heft_str name);
/* Return the name of the first text that was used to measure; empty: not stated. */
HEFT_API heft_str heft_importance_dataset(const heft_importance *m);
/* Return the number of chunks of text that were used; 0: not stated. */
HEFT_API uint32_t heft_importance_chunks(const heft_importance *m);
/* Return the number of bytes that follow the end of an imatrix.dat, which mean nothing; 0 for a
 * GGUF file, whose own notes say so. */
HEFT_API uint64_t heft_importance_trailing(const heft_importance *m);

/* ---- mixes -------------------------------------------------------------------------------- */

typedef struct heft_mix_info {
    const char *name;    /* "q4_k_m"; NULL: there is no such mix */
    uint32_t file_type;  /* the value of general.file_type */
    heft_dtype dtype;    /* the type of most weights */
    const char *refusal; /* why files of the mix are not written; NULL: they are.  Static. */
} heft_mix_info;
/* Return mix i of the table; name is NULL after the last.  Mixes whose types cannot be encoded are
 * listed, too: heft_mix_open() refuses them. */
HEFT_API heft_mix_info heft_mix_info_at(uint32_t i);
/* Find a mix by name, in letters of either case.  "q4_k" is "q4_k_m", as in llama-quantize. */
HEFT_API bool heft_mix_find(heft_mix_info *out, heft_str name);

/* Return why llama.cpp needs a floating-point tensor in f32, such as "norm"; NULL: it takes other
 * types, too.  name: its name in the GGUF file.  Static. */
HEFT_API const char *heft_mix_needs_f32(const heft_tensor *t, heft_str name);

typedef struct heft_mix_options {
    size_t size;     /* = sizeof(heft_mix_options) */
    const char *mix; /* name of the mix */
    /* Callbacks get a tensor of the file; NULL changes nothing.  keep and rename are those of the
     * conversion: rules apply to the names and tensors that are written. */
    bool (*keep)(void *ctx, const heft_tensor *t);
    heft_str (*rename)(void *ctx, const heft_tensor *t);
    /* Return a type that replaces the rules for the tensor with that name, which may be the type
     * `from` that the tensor has; or HEFT_UNTYPED. */
    heft_dtype (*type)(void *ctx, heft_str name, heft_dtype from);
    void *ctx;
    /* Metadata that replace or add to those of the file. */
    const heft_value *set;
    size_t set_count;
    const heft_importance *importance; /* must outlive the mix; NULL: none */
    heft_str importance_file;          /* its name, for the metadata; may be empty */
    heft_dtype output_type;            /* type of output.weight; HEFT_UNTYPED: by the rules */
    heft_dtype embedding_type;         /* type of token_embd.weight; HEFT_UNTYPED: by the rules */
    bool pure;                         /* all weights get the default type */
    bool keeps_output;                 /* output.weight keeps its type */
    bool requantise;                   /* also weights that are stored with a loss already */
    uint8_t reserved[27];              /* 0; for further choices */
} heft_mix_options;
#define HEFT_MIX_OPTIONS_INIT                                                               \
    {                                                                                       \
        sizeof(heft_mix_options), NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, { NULL, 0 }, \
            HEFT_UNTYPED, HEFT_UNTYPED, false, false, false,                                \
        {                                                                                   \
            0                                                                               \
        }                                                                                   \
    }

/* The types of the tensors of a model. */
typedef struct heft_mix heft_mix;
/* Apply a mix to the tensors of f.  No data are read.  f must outlive the object.
 *   HEFT_E_ARGUMENT     there is no such mix: the message lists all; or a tensor's importance has
 *                       another number of columns
 *   HEFT_E_UNSUPPORTED  a type cannot be encoded, or needs importance; or a weight is stored with a
 *                       loss already, and opt->requantise is not set; or metadata that a rule needs
 *                       are missing: the message names the key */
HEFT_API HEFT_MUST_CHECK heft_status heft_mix_open(heft_mix **out, const heft_file *f,
                                                   const heft_mix_options *opt, heft_error *err);
/* Close the object.  NULL is ignored. */
HEFT_API void heft_mix_close(heft_mix *m);
/* Return the mix. */
HEFT_API heft_mix_info heft_mix_chosen(const heft_mix *m);

/* What becomes of a tensor. */
typedef struct heft_mix_item {
    heft_str name; /* in the output */
    heft_dtype from, to;
    /* The type of the rules, if the columns do not fill its blocks and another type replaces it;
     * else HEFT_UNTYPED. */
    heft_dtype instead_of;
    const char *reason; /* why the tensor keeps its type, "norm"; NULL: it does not.  Static. */
    bool is_left_out;   /* by `keep` */
    uint64_t bytes, new_bytes;
    const float *importance; /* numbers for the columns of each matrix; or NULL */
    uint64_t reserved[2];    /* 0 */
} heft_mix_item;
/* Return what becomes of a tensor of the file. */
HEFT_API heft_mix_item heft_mix_at(const heft_mix *m, uint32_t tensor);
/* Return the metadata that the output must have: general.file_type, general.quantization_version,
 * and where the importance is from. */
HEFT_API const heft_value *heft_mix_metadata(size_t *count, const heft_mix *m);

#ifdef __cplusplus
}
#endif
#endif
