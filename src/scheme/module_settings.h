/* module_settings.h - the settings of a quantised model: for all of it, for modules by their names
 * or by patterns, and the names of modules that are not quantised. */
#ifndef HEFT_MODULE_SETTINGS_H
#define HEFT_MODULE_SETTINGS_H
#include "model/names.h"
#include "scheme/name_pattern.h"
#include "scheme/quantisation_settings.h"

/* Steps that may be spent to match the patterns of a model. */
#define HEFT_PATTERN_WORK (UINT64_C(1) << 30)

typedef enum heft_rule_kind {
    HEFT_RULE_NAME,   /* the name of a module */
    HEFT_RULE_ENDING, /* the last components of the name */
    HEFT_RULE_REGEX,  /* see name_pattern.h */
    HEFT_RULE_GLOB,   /* a shell pattern for the whole name */
    HEFT_RULE_CLASS   /* a class, "Linear", which names do not show */
} heft_rule_kind;

typedef struct heft_module_rule {
    heft_rule_kind kind;
    heft_str text;
    bool is_exempt; /* the module is not quantised */
    heft_quantisation_settings of;
    heft_name_pattern *pattern; /* a REGEX that is understood has one, others NULL */
} heft_module_rule;

typedef struct heft_module_settings {
    heft_memory *mem;
    heft_arena *arena; /* has the texts */
    const heft_name_hash *key;
    heft_quantisation_settings model;
    heft_vec rules;      /* heft_module_rule: names */
    heft_names names;    /* names of `rules` */
    heft_vec patterns;   /* heft_module_rule: all others, in their order */
    heft_str not_known;  /* a pattern for quantised modules that is not understood; may be empty */
    bool has_exemptions; /* some names are those of modules that are not quantised */
    bool has_endings;
    bool is_spent; /* matching was given up: the settings of some modules are not known */
} heft_module_settings;

/* Read the settings, which may be NULL, and `embedded`, from the metadata of the file, which may be
 * NULL, too.  *m has mem, arena and key.  Return false if out of memory. */
bool heft_module_settings_read(heft_module_settings *m, const heft_settings *s,
                               const heft_settings *embedded);
void heft_module_settings_free(heft_module_settings *m);
/* Read the settings of the whole model only; texts are borrowed. */
void heft_quantisation_settings_read(heft_quantisation_settings *out, const heft_settings *s);

/* Add a rule and copy its texts.  The first rule for a name stays.  False: out of memory. */
bool heft_module_rule_add(heft_module_settings *m, const heft_module_rule *rule);
/* Return the settings of a module, "layers.0.up.", and reduce *work; they stay until the end. */
const heft_quantisation_settings *heft_module_settings_of(const heft_module_settings *m,
                                                          heft_str module, uint64_t *work);
/* Return true if the settings exempt the module of the tensor, or may do so by a pattern that is
 * not understood. */
bool heft_module_is_exempt(const heft_module_settings *m, heft_str tensor, uint64_t *work);

#endif
