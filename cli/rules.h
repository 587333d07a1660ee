/* rules.h - options that change a model: patterns, renames, casts, metadata, identities. */
#ifndef HEFT_CLI_RULES_H
#define HEFT_CLI_RULES_H
#include "cmd.h"
#include "glob_rules.h"
#include "gptrs_options.h"
#include "identity.h"
#include "opt.h"
#include "renames.h"

typedef struct rules {
    opt_list keep, drop, transpose, densify, set; /* arguments */
    renames rename;
    glob_rules cast, sparsify;
    storage_rules storage;
    identities ids;
    heft_value *values; /* parsed `set`, one per key */
    size_t value_count;
    gptrs_rules gptrs;
    /* EMBD names: remove the prefix "bert." and drop position_ids. */
    bool encoder;
    bool no_memory; /* out of memory in a callback; the callback then ends the conversion */
} rules;

/* Parse the options, and store how parts without a matching pattern are stored in *o. Return an
 * exit code; cmd is the command named in the error line. */
int rules_prepare(rules *r, const char *cmd, heft_write_options *o);
/* Set the callbacks of a conversion that the rules need; their context is r. */
void rules_set(rules *r, heft_convert_options *o);
/* Add metadata before the values of --set; the values of --set take precedence. Return false
 * without memory. */
bool rules_add_values(rules *r, const heft_value *values, size_t count);
void rules_release(rules *r);

/* Warn about patterns and expressions that no tensor of the file matches. Return CODE_USAGE if
 * --keep and --drop leave no tensor, or another exit code. */
int rules_check(rules *r, const char *cmd, const heft_file *f, const char *path);

#endif
