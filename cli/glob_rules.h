/* picks.h - options that take [GLOB=]VALUE and may be repeated: the first that matches a tensor's name counts. */
#ifndef HEFT_CLI_GLOB_RULES_H
#define HEFT_CLI_GLOB_RULES_H
#include "cmd.h"
#include "opt.h"

typedef struct glob_rule {
    char *glob; /* NULL: every tensor */
    heft_dtype dtype;
    heft_layout layout;
    heft_storage storage; /* the encoding with its level, or the digest */
    bool is_known, value; /* whether a gradient is needed */
    bool has_matched;     /* some tensor, where that is noted */
} glob_rule;

typedef struct glob_rules {
    opt_list args;
    glob_rule *items; /* one for each that was given */
} glob_rules;

typedef enum glob_rule_kind {
    GLOB_CAST,
    GLOB_SPARSIFY,
    GLOB_COMPRESS,
    GLOB_DIGEST,
    GLOB_GRAD
} glob_rule_kind;

/* Makes sense of what was given.  Not CODE_DONE: said why not. */
int glob_rules_prepare(glob_rules *p, glob_rule_kind kind, const char *cmd);
void glob_rules_release(glob_rules *p);
/* The first that matches the name, or NULL. */
const glob_rule *glob_rules_find(bool *no_memory, const glob_rules *p, heft_str name);
/* The first for every tensor, or NULL. */
const glob_rule *glob_rules_find_default(const glob_rules *p);
/* Warns of a pattern behind --OPTION that no tensor of the file matches; *no_memory is set when that cannot be told. */
void glob_warn_if_unmatched(bool *no_memory, const heft_file *f, const char *path,
                            const char *option, const char *glob);
void glob_warn_unmatched(const char *path, const char *option, const char *glob);
/* The same for all of them. */
void glob_rules_warn_unmatched(bool *no_memory, const glob_rules *p, glob_rule_kind kind,
                               const heft_file *f, const char *path);

/* ---- --compress and --digest together ---- */

typedef struct storage_rules {
    glob_rules compress, digest;
    bool no_memory; /* for a name: storing_choose() says something then that ends the conversion */
} storage_rules;

/* Sets what holds for every tensor in *o. */
int storage_rules_prepare(storage_rules *s, const char *cmd, heft_write_options *o);
bool storage_rules_are_given(const storage_rules *s);
/* For heft_convert_options; ctx is the storing. */
bool storage_rules_choose(void *ctx, const heft_tensor *t, heft_str role, heft_storage *storage);
/* What is said, and how it ends, once no_memory is set. */
int say_no_memory_to_match(const char *path);
void storage_rules_warn_unmatched(storage_rules *s, const heft_file *f, const char *path);
void storage_rules_release(storage_rules *s);

#endif
