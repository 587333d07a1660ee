/* quantise.h - quantise the weights of a model: the tensors of a scheme in place of weights.  The
 * general rules of heft.h apply.
 *
 * docs/quantisation.md lists the methods, their formulas, and which tensors are left alone.
 *
 * Stability: provisional. */
#ifndef HEFT_QUANTISE_H
#define HEFT_QUANTISE_H
#include <heft/scheme.h>
#include <heft/write.h>

#ifdef __cplusplus
extern "C" {
#endif
/* ---- quantised models --------------------------------------------------------------------- */
/* A method to quantise.  Texts are static. */
typedef struct heft_quantise_method {
    const char *name;    /* "fp8"; NULL: there is no such method */
    const char *options; /* "channel|ROWSxCOLUMNS" may follow a colon; "": nothing may */
    const char *summary; /* a line without a full stop */
} heft_quantise_method;
/* Return method i of the table; name is NULL after the last. */
HEFT_API heft_quantise_method heft_quantise_method_at(uint32_t i);

/* The choice to quantise a tensor. */
typedef enum heft_quantise_wish {
    HEFT_QUANTISE_BY_DEFAULT, /* unless it is an embedding, a norm, a head, ... */
    HEFT_QUANTISE_NEVER,
    HEFT_QUANTISE_ALWAYS /* if the method can, also an embedding or a head */
} heft_quantise_wish;

typedef struct heft_quantise_options {
    size_t size; /* = sizeof(heft_quantise_options) */
    /* Name and options, "fp8", "int4:64".  "qfloat", which is not listed, copies the integers and
     * scales of quantised tensors to the form of Burn, with the layout "burn.qfloat", and leaves
     * other tensors alone. */
    const char *method;
    /* Say which tensors of the model are quantised; t is a tensor of f, and of a quantised tensor
     * its weight.  NULL: all by default. */
    heft_quantise_wish (*wish)(void *ctx, const heft_tensor *t);
    void *ctx;
    /* The quantised tensors of f, found with the settings of the model.  NULL: they are found by
     * names, types and shapes alone. */
    const heft_schemes *schemes;
    /* NaN becomes NaN where the method has one, else 0, and infinities become the largest number.
     * Without this they are an error when they are read. */
    bool allow_nan;
    bool requantise;      /* also weights that are stored with a loss already */
    bool plan_only;       /* read no data: the bytes of the result must not be read */
    bool verify;          /* compare the stored checksums of the weights first, by reading them */
    uint8_t reserved[20]; /* 0; for further choices */
    /* Measure what is encoded while a conversion with the same object writes it; borrowed.  NULL:
     * nothing is measured. */
    heft_quality *quality;
} heft_quantise_options;
#define HEFT_QUANTISE_OPTIONS_INIT                                                                \
    {                                                                                             \
        sizeof(heft_quantise_options), NULL, NULL, NULL, NULL, false, false, false, false, { 0 }, \
            NULL                                                                                  \
    }

/* A model as it is when its weights are quantised. */
typedef struct heft_quantisation heft_quantisation;

/* Plan to quantise the weights of f: heft_quantisation_file() is the resulting model.  Numbers are
 * encoded whenever they are read.  The same input gives the same bytes, on any number of threads.
 * Methods with a scale for a whole tensor read the weights here, unless opt->plan_only.  f and
 * opt->schemes must outlive the object.
 *   HEFT_E_ARGUMENT     the method is unknown (the message lists all), or it has no such option
 *   HEFT_E_UNSUPPORTED  a weight is stored with a loss already (rule "heft/requantise"), and
 *                       opt->requantise is not set
 *   HEFT_E_LOSSY        a weight has a NaN or an infinity (rule "heft/not-finite"), and
 *                       opt->allow_nan is not set; also when the bytes are read later */
HEFT_API HEFT_MUST_CHECK heft_status heft_quantisation_open(heft_quantisation **out,
                                                            const heft_file *f,
                                                            const heft_quantise_options *opt,
                                                            heft_error *err);
/* Close the object and its file.  NULL is ignored. */
HEFT_API void heft_quantisation_close(heft_quantisation *q);
/* Return the resulting model: all tensors, metadata and parts of f, the weights quantised.
 * Metadata about an earlier quantisation are left out.  It lives as long as q. */
HEFT_API const heft_file *heft_quantisation_file(const heft_quantisation *q);

/* A tensor of the model, and its new form. */
typedef struct heft_quantise_item {
    heft_str name;
    heft_dtype from; /* element type of the numbers; of a quantised weight, those it represents */
    const char *scheme; /* "fp8"; NULL: the tensor is not quantised */
    /* Why the tensor is not quantised, "embedding"; or how it was stored before, if it was
     * quantised: "decoded" (unless it was chosen), "numbers copied"; else NULL.  Static. */
    const char *reason;
    uint64_t bytes, new_bytes; /* all stored parts, before and after */
    heft_quantise_wish wish;   /* the result of opt->wish */
    uint8_t reserved[12];      /* 0 */
} heft_quantise_item;
/* Return the number of tensors that the model represents. */
HEFT_API uint32_t heft_quantisation_count(const heft_quantisation *q);
/* Return tensor i, in the order of the model. */
HEFT_API heft_quantise_item heft_quantisation_at(const heft_quantisation *q, uint32_t i);

/* Write the text of a config.json for the resulting model: that of `config`, an object in JSON or
 * empty, with "quantization_config" as vLLM, transformers and compressed-tensors expect it.  All
 * other text is kept.  Free *out with heft_blob_free().
 *   HEFT_E_FORMAT  config is not an object in JSON */
HEFT_API HEFT_MUST_CHECK heft_status heft_quantisation_config(heft_blob *out,
                                                              const heft_quantisation *q,
                                                              heft_str config, heft_error *err);

/* ---- the quality of what is written ------------------------------------------------------- */

/* Open an object that measures, while tensors are quantised and written, how far the numbers of the
 * file are from those of the source: no byte is read for it.  Give it to heft_quantisation_open()
 * (schemes) and to heft_file_convert() (schemes, and block types of mix.h); it must outlive both.
 * One conversion at a time may use it; it measures on all threads, and the results are the same for
 * any number of them.  Memory grows with the number of tensors.  host: NULL for the default. */
HEFT_API HEFT_MUST_CHECK heft_status heft_quality_open(heft_quality **out, const heft_host *host,
                                                       heft_error *err);
/* Close the object.  NULL is ignored. */
HEFT_API void heft_quality_close(heft_quality *q);

/* Sums over pairs of a number of the source and the number that a reader decodes from the file,
 * both in f32.  The sums are over pairs of finite numbers:
 *   RMSE    square root of sum_squares / finite
 *   NMSE    sum_squares / squares_written
 *   cosine  products / (square root of squares_source * square root of squares_written) */
typedef struct heft_quality_item {
    heft_str name;      /* its name in the source; of a tensor in blocks that in the output */
    heft_dtype from;    /* element type of the numbers */
    const char *type;   /* scheme or block type, "fp8", "q4_k"; NULL: of the total.  Static. */
    uint64_t elements;  /* 0: not written, or stored once with an equal tensor */
    uint64_t finite;    /* elements with finite numbers in source and file */
    double max_abs;     /* largest difference, over pairs without a NaN; infinity is possible */
    double sum_squares; /* sum of the squared differences */
    double squares_source, squares_written, products;
    uint64_t differing;   /* pairs of different numbers; NaN equals NaN, and -0 equals 0 */
    uint64_t reserved[1]; /* 0 */
} heft_quality_item;
/* Return the number of tensors that are quantised: known once a conversion has begun. */
HEFT_API uint32_t heft_quality_count(const heft_quality *q);
/* Return tensor i; the name is borrowed from q.  Call this after the conversion. */
HEFT_API heft_quality_item heft_quality_at(const heft_quality *q, uint32_t i);
/* Return the sums over all tensors: those with more elements count more. */
HEFT_API heft_quality_item heft_quality_total(const heft_quality *q);

#ifdef __cplusplus
}
#endif
#endif
