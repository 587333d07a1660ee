/* module_settings.h - what the settings of a quantised model say of single modules: MLX gives some
 * of them a width and a group size of their own, others list modules that are not quantised. */
#ifndef HEFT_MODULE_SETTINGS_H
#define HEFT_MODULE_SETTINGS_H
#include "model/names.h"
#include "scheme/quantisation_settings.h"

typedef struct heft_module_settings { /* begin with zeros */
    heft_vec rows;
    heft_names names;
} heft_module_settings;

/* Read the modules with settings of their own; the names are borrowed from the settings, which may
 * be NULL. Return false if out of memory. */
bool heft_module_settings_read(heft_module_settings *out, heft_memory *mem,
                               const heft_name_hash *key, const heft_settings *s);
void heft_module_settings_free(heft_module_settings *m, heft_memory *mem);
/* Return the settings of the module, "layers.0.up.", from those of the model. */
heft_quantisation_settings heft_module_settings_of(const heft_module_settings *m,
                                                   const heft_name_hash *key,
                                                   const heft_quantisation_settings *model,
                                                   heft_str module);

/* Append to *out the names of modules that are not quantised, as heft_str in the arena. */
bool heft_exempt_modules(heft_vec *out, heft_memory *mem, heft_arena *arena,
                         const heft_settings *s);
/* Return true if the tensor belongs to such a module, or if one of the names is a pattern, which is
 * not matched here. */
bool heft_is_exempt(const heft_vec *exempt, heft_str tensor);

#endif
