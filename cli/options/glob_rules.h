/* glob_rules.h - options that take [GLOB=]VALUE and may be repeated. The first rule that matches a
 * tensor's name applies. */
#ifndef HEFT_CLI_GLOB_RULES_H
#define HEFT_CLI_GLOB_RULES_H
#include <heft/write.h>

#include "models/model.h"
#include "options/opt.h"
#include "process/cmd.h"

typedef struct glob_rule {
    char *glob; /* NULL matches every tensor */
    heft_layout layout;
    heft_storage storage; /* encoding and level, or digest */
    bool is_known, value; /* --requires-grad: is_known is false for "unset" */
} glob_rule;

typedef struct glob_rules {
    opt_list args;
    glob_rule *items; /* one per argument */
} glob_rules;

typedef enum glob_rule_kind { GLOB_SPARSIFY, GLOB_COMPRESS, GLOB_DIGEST, GLOB_GRAD } glob_rule_kind;

/* Parse the arguments. Return an exit code; cmd is the command named in the error line. */
int glob_rules_prepare(glob_rules *p, glob_rule_kind kind, const char *cmd);
void glob_rules_release(glob_rules *p);
/* Return the first rule that matches the name, or NULL. *no_memory is set if a match could not be
 * tested. */
const glob_rule *glob_rules_find(bool *no_memory, const glob_rules *p, heft_str name);
/* Return the first rule without a pattern, or NULL. */
const glob_rule *glob_rules_find_default(const glob_rules *p);
/* Report every rule whose pattern matches no tensor. */
void glob_rules_check(unmatched *u, const glob_rules *p, glob_rule_kind kind);

/* ---- --compress and --digest together ---- */

typedef struct storage_rules {
    glob_rules compress, digest;
    /* a name could not be matched; storage_rules_choose() then makes the conversion fail */
    bool no_memory;
} storage_rules;

/* Parse the arguments, and store rules without a pattern as defaults in *o. Return an exit code. */
int storage_rules_prepare(storage_rules *s, const char *cmd, heft_write_options *o);
bool storage_rules_are_given(const storage_rules *s);
/* Choose how a part is stored, as the callback `storage` of heft_convert_options; ctx is the
 * storage_rules. */
bool storage_rules_choose(void *ctx, const heft_tensor *t, heft_str role, heft_storage *storage);
/* Print the error for no_memory; return the exit code. */
int say_no_memory_to_match(const char *path);
void storage_rules_check(unmatched *u, const storage_rules *s);
void storage_rules_release(storage_rules *s);

#endif
