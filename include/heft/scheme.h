/* scheme.h - quantised tensors: which stored tensors of a file belong together.  The general
 * rules of heft.h apply.
 *
 * Quantised models store a weight as several tensors, such as packed numbers and their scales.  A
 * scheme is the rule that joins them; docs/quantisation.md lists the schemes.  Schemes are
 * recognised by names, element types, shapes and attributes of the stored tensors, and by the
 * settings of the model.  No data are read.
 *
 * Numbers of a stored tensor that is part of a scheme mean nothing alone: heft_file_convert(),
 * heft_array_read(), heft_array_read_slice() and heft_derivation_f32() refuse to cast them.
 *
 * Stability: provisional. */
#ifndef HEFT_SCHEME_H
#define HEFT_SCHEME_H
#include <heft/heft.h>

#ifdef __cplusplus
extern "C" {
#endif
/* ---- quantised tensors -------------------------------------------------------------------- */
/* A tensor that several stored tensors represent.  Texts are borrowed from heft_schemes. */
typedef struct heft_quantised {
    heft_str name;    /* name of the represented tensor, "layers.0.up_proj.weight" */
    heft_str scheme;  /* "fp8", "awq", ...; the settings' name of a scheme that is not recognised */
    heft_str variant; /* "ModelOpt", "nf4", ...; may be empty */
    uint32_t bits;    /* bits of a stored element; 0: not known */
    uint32_t part_count;
    /* Rows and columns of a block of elements with the same scale; 0: all rows or columns.  {1, 32}
     * are groups of 32 elements in a row, {1, 0} is a scale for each row. */
    uint64_t block[2];
    bool has_block;       /* block is known */
    uint8_t reserved[31]; /* 0: room for three numbers */
} heft_quantised;

/* A stored tensor, and what it is for the quantised tensor. */
typedef struct heft_quantised_part {
    uint32_t tensor;  /* id in the file */
    const char *role; /* "weight", "scale", "zero_point", ...; static */
} heft_quantised_part;

/* Return true if the settings say how a model is quantised, under the usual keys. */
HEFT_API bool heft_settings_are_quantised(const heft_settings *s);
/* Find the quantised tensors of f.  settings: values of the config.json, quantize_config.json or
 * hf_quant_config.json that belongs to the model, or NULL; not used after the call.  The time grows
 * with the number of tensors, not with the size of the data.  f must outlive the object, which
 * several threads may use at the same time. */
HEFT_API HEFT_MUST_CHECK heft_status heft_schemes_open(heft_schemes **out, const heft_file *f,
                                                       const heft_settings *settings,
                                                       heft_error *err);
/* Close the object.  NULL is ignored. */
HEFT_API void heft_schemes_close(heft_schemes *s);
/* Return the number of quantised tensors. */
HEFT_API uint32_t heft_schemes_count(const heft_schemes *s);
/* Return quantised tensor i. */
HEFT_API heft_quantised heft_schemes_at(const heft_schemes *s, uint32_t i);
/* Return part k of quantised tensor i; part_count is the number of parts. */
HEFT_API heft_quantised_part heft_schemes_part_at(const heft_schemes *s, uint32_t i, uint32_t k);
/* Return the quantised tensor that a stored tensor is part of, or HEFT_NONE. */
HEFT_API uint32_t heft_schemes_find(const heft_schemes *s, uint32_t tensor);
typedef struct heft_decode_options {
    size_t size;   /* = sizeof(heft_decode_options) */
    heft_dtype as; /* element type of all decoded tensors; HEFT_UNTYPED: of each its own */
    /* Leave tensors of schemes that are recognised and not decoded as they are stored. */
    bool keeps_undecoded;
    /* Compare the stored checksums of the parts first, which reads their bytes once more. */
    bool verify;
    /* Decode tensors of block types of GGUF, too; their own type is f32, which loses nothing. */
    bool decodes_blocks;
    /* A finite number that becomes infinite in its tensor's own type is an error when it is read,
     * as it always is in another type of 16 bits. */
    bool refuses_infinity;
    uint8_t reserved[24]; /* 0; for further choices */
} heft_decode_options;
#define HEFT_DECODE_OPTIONS_INIT                                               \
    {                                                                          \
        sizeof(heft_decode_options), HEFT_UNTYPED, false, false, false, false, \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }

/* Open the model that a file with quantised tensors represents: a file with a tensor for each
 * quantised one, and all other tensors, metadata and parts of f. Metadata about the
 * quantisation are left out, unless opt->keeps_undecoded. Numbers are decoded whenever they are
 * read, by the rule of the scheme in f32, and rounded once; nothing is kept. Finite numbers that
 * f16 or bf16 does not have are HEFT_E_UNSUPPORTED when they are read, unless that is the own type
 * of the tensor. f and s must outlive *out; close it with heft_file_close().
 *   HEFT_E_UNSUPPORTED  a scheme is recognised and not decoded
 *   HEFT_E_FORMAT       parts contradict each other, or a scale is missing */
HEFT_API HEFT_MUST_CHECK heft_status heft_schemes_decode(heft_file **out, const heft_file *f,
                                                         const heft_schemes *s,
                                                         const heft_decode_options *opt,
                                                         heft_error *err);

#ifdef __cplusplus
}
#endif
#endif
