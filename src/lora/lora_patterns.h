/* lora_patterns.h - the patterns by which the settings of an adapter name modules, as PEFT matches
 * them: the whole name, or what follows a dot. */
#ifndef HEFT_LORA_PATTERNS_H
#define HEFT_LORA_PATTERNS_H
#include "model/names.h"

typedef struct heft_lora_patterns { /* no patterns: mem, key and work are set, which are borrowed */
    heft_memory *mem;
    const heft_name_hash *key;
    heft_vec rows;        /* They have the order of the settings. */
    heft_names names;     /* numbers of the rows without operators but dots, by text */
    heft_vec shapes;      /* the first row with dots at these places */
    heft_vec expressions; /* All other rows have numbers here. */
    uint64_t *work;       /* Comparisons reduce it; 0: the results are wrong. */
} heft_lora_patterns;

/* Make room for `count` patterns; false: out of memory. */
bool heft_lora_patterns_reserve(heft_lora_patterns *p, uint32_t count);
/* Add a pattern, whose text is borrowed; false: out of memory. */
bool heft_lora_patterns_add(heft_lora_patterns *p, heft_str text, double number);
/* Set the number of the first pattern that names the module; false: none does. */
bool heft_lora_patterns_find(double *out, const heft_lora_patterns *p, heft_str module);
/* Note the patterns that name the module. */
void heft_lora_patterns_mark(heft_lora_patterns *p, heft_str module);
/* Find the next pattern from row *i on that names no marked module, and advance *i; false: there is
 * none. */
bool heft_lora_patterns_unused(heft_str *out, const heft_lora_patterns *p, uint32_t *i);
void heft_lora_patterns_free(heft_lora_patterns *p);

/* Return whether the text is a pattern that is understood. */
bool heft_lora_pattern_is_valid(heft_str text);
/* Return whether a pattern names a module, and reduce the work. */
bool heft_lora_pattern_names(heft_str text, heft_str module, uint64_t *work);

#endif
