/* rules.h - what a conversion is asked to change: patterns, substitutions, values, identities. */
#ifndef HEFT_CLI_RULES_H
#define HEFT_CLI_RULES_H
#include <regex.h>

#include "cmd.h"
#include "glob_rules.h"
#include "gptrs_options.h"
#include "identity.h"
#include "opt.h"

typedef struct substitution { /* s/RE/TEXT/flags */
    regex_t re;
    char *text; /* with \1 and & still in it */
    bool is_global, has_matched;
} substitution;

typedef struct rules {
    opt_list keep, drop, rename, transpose, densify, set; /* as given */
    glob_rules cast, sparsify;
    storage_rules storage;
    substitution *substitutions;
    identities ids;
    heft_value *values; /* of set, one for each key */
    size_t value_count;
    gptrs_rules gptrs;
    bool encoder; /* names as EMBD files have them: no bert. in front, no position_ids */
    struct stored_name *names;
    bool no_memory; /* for a rule: a new name is given then that ends the conversion */
} rules;

/* Makes sense of all that was given, in the name of the command who, and sets in *o how parts are stored of which no
 * pattern speaks.  Not CODE_DONE: said why not. */
int rules_prepare(rules *r, const char *cmd, heft_write_options *o);
/* Sets the callbacks of a conversion that the rules need; their context is the rules. */
void rules_set(rules *r, heft_convert_options *o);
/* Further metadata, in front of those that were set, which win.  False: no memory. */
bool rules_add_values(rules *r, const heft_value *values, size_t count);
void rules_release(rules *r);

/* Warns of patterns and expressions that no tensor of the file matches: most likely a slip.  CODE_USAGE,
 * after saying so, when patterns leave no tensor. */
int rules_check(rules *r, const char *cmd, const heft_file *f, const char *path);

#endif
