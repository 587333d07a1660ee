/* blend.h - blend models: weighted sums, spherical interpolation, sums of differences to a base.
 * The general rules of heft.h apply.
 *
 * docs/blend.md has the formulas, with the order of every sum, and the settings.
 *
 * Stability: provisional. */
#ifndef HEFT_BLEND_H
#define HEFT_BLEND_H
#include <heft/write.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings ----------------------------------------------------------------------------- */

/* Settings of a blend: a method, models by name, values for tensors. */
typedef struct heft_blend_settings heft_blend_settings;
/* Read settings, an object in JSON.  host: NULL for the default.  Close *out with
 * heft_blend_settings_close().
 *   HEFT_E_FORMAT       the text is not JSON, or a value is not what its key needs
 *   HEFT_E_ARGUMENT     an unknown method (the message lists all), an unknown key, values that do
 *                       not go together
 *   HEFT_E_UNSUPPORTED  slices of layers */
HEFT_API HEFT_MUST_CHECK heft_status heft_blend_settings_read(heft_blend_settings **out,
                                                              heft_str text, const heft_host *host,
                                                              heft_error *err);
/* Close settings.  NULL is ignored. */
HEFT_API void heft_blend_settings_close(heft_blend_settings *s);
/* Return the number of models, the base included. */
HEFT_API uint32_t heft_blend_settings_models(const heft_blend_settings *s);
/* Return the name of model i as the settings have it; borrowed from s. */
HEFT_API heft_str heft_blend_settings_model(const heft_blend_settings *s, uint32_t i);
/* Return the number of the base, whose metadata and order the result gets. */
HEFT_API uint32_t heft_blend_settings_base(const heft_blend_settings *s);

/* Convert a document in YAML to JSON, by libyaml: mappings, sequences and scalars; a plain scalar
 * that is a number of JSON, a boolean or null becomes one.  Free *out with heft_blob_free().
 *   HEFT_E_FORMAT       it is not YAML, or not one document
 *   HEFT_E_LIMIT        more than 64 levels
 *   HEFT_E_UNSUPPORTED  aliases, keys that are not scalars; a build without libyaml, or the library
 *                       is not there */
HEFT_API HEFT_MUST_CHECK heft_status heft_yaml_to_json(heft_blob *out, heft_str yaml,
                                                       const heft_host *host, heft_error *err);

/* ---- blending ----------------------------------------------------------------------------- */

typedef struct heft_blend_options {
    size_t size; /* = sizeof(heft_blend_options) */
    /* Report what is not blended from all models, rules "heft/blend-..." of docs/findings.md.  May
     * be NULL. */
    heft_loss_fn on_loss;
    heft_progress_fn progress; /* progress of heft_blend_open(); may be NULL */
    void *ctx;                 /* passed to the callbacks */
    bool verify;    /* compare the stored checksums of the tensors first, by reading them */
    bool allow_nan; /* results that are not finite are kept; else reading them is HEFT_E_LOSSY */
    bool plan_only; /* read no data: the bytes of the result must not be read */
    uint8_t reserved[21]; /* 0 */
} heft_blend_options;
#define HEFT_BLEND_OPTIONS_INIT                                            \
    {                                                                      \
        sizeof(heft_blend_options), NULL, NULL, NULL, false, false, false, \
        {                                                                  \
            0                                                              \
        }                                                                  \
    }

typedef struct heft_blend heft_blend;
/* Blend files, one for each model of the settings, in their order, of any formats.  Numbers are
 * computed in f32 whenever the result is read, and rounded once to the type of the tensor: the same
 * bytes on any number of threads.  Methods that need sums or thresholds of whole tensors read the
 * tensors here first, on all threads, unless opt->plan_only.  s and the files must outlive *out.
 * opt may be NULL.
 *   HEFT_E_ARGUMENT     shapes differ (tensor and both shapes); a tensor that not all models have
 *                       (the first is named); weights with the sum zero, normalised; tensors that
 *                       share their bytes and would differ
 *   HEFT_E_UNSUPPORTED  the result would have a block type
 *   HEFT_E_CANCELLED    opt->progress returned false */
HEFT_API HEFT_MUST_CHECK heft_status heft_blend_open(heft_blend **out, const heft_blend_settings *s,
                                                     const heft_file *const *files,
                                                     const heft_blend_options *opt,
                                                     heft_error *err);
/* Close the object and its file.  NULL is ignored. */
HEFT_API void heft_blend_close(heft_blend *b);
/* Return the resulting model: tensors, metadata and parts of the base.  It lives as long as b. */
HEFT_API const heft_file *heft_blend_file(const heft_blend *b);

typedef struct heft_blend_item { /* a tensor of the result */
    heft_str name;               /* borrowed from the base */
    heft_dtype from, to;         /* element types in the base and in the result */
    uint32_t models;             /* number of models that are blended; 0: it is that of the base */
    uint32_t reserved[5];        /* 0 */
} heft_blend_item;
/* Return the number of tensors of the result. */
HEFT_API uint32_t heft_blend_count(const heft_blend *b);
/* Return tensor i, in the order of the base. */
HEFT_API heft_blend_item heft_blend_at(const heft_blend *b, uint32_t i);

#ifdef __cplusplus
}
#endif
#endif
