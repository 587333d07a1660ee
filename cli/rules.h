/* rules.h - what convert is asked to change: patterns, substitutions, values. */
#ifndef HEFT_CLI_RULES_H
#define HEFT_CLI_RULES_H
#include <regex.h>

#include "cmd.h"
#include "gptrs_options.h"
#include "identity.h"
#include "opt.h"
#include "picks.h"

typedef struct substitution { /* s/RE/TEXT/flags */
    regex_t re;
    char *text; /* with \1 and & still in it */
    bool everywhere, has_matched;
} substitution;

typedef struct rules {
    opt_list keep, drop, rename, transpose, densify, set; /* as given */
    picks cast, sparsify;
    storing storage;
    substitution *substitutions;
    identities ids;
    heft_value *values; /* of set, one for each key */
    size_t value_count;
    gptrs_rules gptrs;
    bool encoder; /* names as EMBD files have them: no bert. in front, no position_ids */
    struct kept_name *names;
    bool no_memory; /* for a rule: rules_rename() gives a name then that ends the conversion */
} rules;

/* Makes sense of the lists, in the name of the command who, and sets in *o how parts are stored of which no
 * pattern speaks.  Not CODE_DONE: said why not. */
int rules_prepare(rules *r, const char *who, heft_write_options *o);
/* Further metadata, in front of those that were set, which win.  False: no memory. */
bool rules_add_values(rules *r, const heft_value *values, size_t count);
void rules_release(rules *r);
/* Whether there is any rule about tensors. */
bool rules_are_given(const rules *r);

/* Warns of patterns and expressions that no tensor of the file matches: most likely a slip.  CODE_USAGE,
 * after saying so, when patterns leave no tensor. */
int rules_check(rules *r, const heft_file *f, const char *path);
/* What is said, and how it ends, once no_memory is set. */
int rules_say_no_memory(const char *path);

/* For heft_convert_options; ctx is the rules. */
bool rules_keep(void *ctx, const heft_tensor *t);
heft_str rules_rename(void *ctx, const heft_tensor *t);
heft_dtype rules_cast(void *ctx, const heft_tensor *t);
bool rules_transpose(void *ctx, const heft_tensor *t);
bool rules_densify(void *ctx, const heft_tensor *t);
heft_layout rules_sparsify(void *ctx, const heft_tensor *t);
bool rules_storage(void *ctx, const heft_tensor *t, heft_str role, heft_storage *how);
bool rules_identify(void *ctx, const heft_tensor *t, heft_identity *id);

#endif
