/* companion.h - text files next to the weights: settings, profiles of models.  The general rules
 * of heft.h apply.
 *
 * Several threads may read one settings or profile object at the same time.  Text given to a parser
 * is copied.  A parser fails with HEFT_E_FORMAT for text that is malformed.  host NULL:
 * heft_host_default(); the host must outlive the object.
 *
 * Stability: provisional. */
#ifndef HEFT_COMPANION_H
#define HEFT_COMPANION_H
#include <heft/check.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings ----------------------------------------------------------------------------- */

/* Parse a JSON object such as config.json.  HEFT_E_LIMIT: more than 2^20 values or 64 levels. */
HEFT_API HEFT_MUST_CHECK heft_status heft_settings_parse_json(heft_settings **out, heft_str text,
                                                              const heft_host *host,
                                                              heft_error *err);
/* Close the settings.  NULL is ignored. */
HEFT_API void heft_settings_close(heft_settings *s);
/* Return the number of strings, numbers and booleans at the top level, which heft_settings_at()
 * lists in the order of the document.  Integers are HEFT_KIND_INT, or HEFT_KIND_UINT past
 * INT64_MAX; other numbers are HEFT_KIND_STR, spelled as in the document.  Values are borrowed
 * from s. */
HEFT_API uint32_t heft_settings_count(const heft_settings *s);
/* Return top-level value i. */
HEFT_API heft_value heft_settings_at(const heft_settings *s, uint32_t i);
/* Find a top-level value by key; false if there is none. */
HEFT_API bool heft_settings_find(heft_value *out, const heft_settings *s, heft_str key);
/* Return the number of all values, children included: a flat list.  A list or map precedes its
 * children: the first child of value i is i + 1, and heft_settings_next(s, i) is the index after
 * value i and all descendants. */
HEFT_API uint32_t heft_settings_value_count(const heft_settings *s);
/* Return value i of the flat list. */
HEFT_API heft_value heft_settings_value_at(const heft_settings *s, uint32_t i);
/* Return the index after value i and all descendants. */
HEFT_API uint32_t heft_settings_next(const heft_settings *s, uint32_t i);
/* Return the index of the value at a path of keys and list positions, "config.layers.0.kind", or
 * HEFT_NONE.  If keys contain dots, the longest key that the path begins with is taken. */
HEFT_API uint32_t heft_settings_find_path(const heft_settings *s, heft_str path);

/* ---- pipelines ---------------------------------------------------------------------------- */

/* A component of a pipeline, as model_index.json of the diffusers library lists components:
 * "unet": ["diffusers", "UNet2DConditionModel"].  Strings are borrowed from the settings. */
typedef struct heft_pipeline_component {
    heft_str name;       /* also the name of the folder; a Python identifier */
    heft_str library;    /* may be empty */
    heft_str class_name; /* empty if the component is absent */
    bool is_present;     /* false: [null, null], the pipeline has no component here */
    bool has_weights;    /* false: absent, or a scheduler, tokenizer or processor */
} heft_pipeline_component;
enum { HEFT_PIPELINE_COMPONENTS = 64 };
/* List the components of a pipeline in the order of the document; s: model_index.json,
 * with the class of the pipeline as "_class_name".  *count is 0 if s does not describe a pipeline.
 *   HEFT_E_FORMAT  a component has an invalid name, or is listed twice
 *   HEFT_E_LIMIT   there are more than HEFT_PIPELINE_COMPONENTS */
HEFT_API HEFT_MUST_CHECK heft_status
heft_settings_pipeline(heft_pipeline_component out[HEFT_PIPELINE_COMPONENTS], uint32_t *count,
                       const heft_settings *s, heft_error *err);

/* ---- profiles ----------------------------------------------------------------------------- */

/* A profile lists the tensors, metadata and tokens that a file of a certain model must have:
 * docs/profiles.md. */
typedef struct heft_profile heft_profile;
/* Parse a profile from JSON. */
HEFT_API HEFT_MUST_CHECK heft_status heft_profile_parse_json(heft_profile **out, heft_str text,
                                                             const heft_host *host,
                                                             heft_error *err);
/* Close a profile.  NULL is ignored. */
HEFT_API void heft_profile_close(heft_profile *p);
/* Return the name of the profile, borrowed from p. */
HEFT_API heft_str heft_profile_name(const heft_profile *p);
/* Compare a file with a profile.  Each difference is a finding of a rule "profile/..." and is added
 * to the counts in *out. out and fn may be NULL.  HEFT_OK: the comparison was completed. */
HEFT_API HEFT_MUST_CHECK heft_status heft_profile_check(heft_verify_result *out,
                                                        const heft_profile *p, const heft_file *f,
                                                        heft_finding_fn fn, void *ctx,
                                                        heft_error *err);

#ifdef __cplusplus
}
#endif
#endif
