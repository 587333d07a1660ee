/* rules.h - options that change a model: patterns, renames, casts, metadata, identities. */
#ifndef HEFT_CLI_RULES_H
#define HEFT_CLI_RULES_H
#include <heft/ids.h>
#include <heft/mix.h>

#include "options/cast_rules.h"
#include "options/glob_rules.h"
#include "options/opt.h"
#include "options/renames.h"
#include "process/cmd.h"

typedef struct identities {
    opt_list set; /* NAME=ID arguments */
    bool all_new, fill;
    const char *seed;
    struct id_assignment *assigned; /* parsed arguments, sorted by name */
    uint64_t *fresh;                /* new ids, in the order of the tensors */
    size_t fresh_count, next;
    bool ran_out; /* the file had more tensors than when the ids were generated */
} identities;

/* Set flags that the library does not know, so that the library refuses the identity, and with the
 * identity the whole conversion or edit, before anything is written. Return true: *id has
 * changed. */
bool identity_make_invalid(heft_identity *id);

bool identities_are_given(const identities *r);
/* Parse the options and generate new ids for the tensors of f that keep() selects; keep NULL
 * selects all. f may be closed afterwards. Return an exit code; cmd is the command named in the
 * error line. */
int identities_prepare(identities *r, const char *cmd, const heft_file *f, const char *path,
                       bool (*keep)(void *ctx, const heft_tensor *t), void *ctx);
/* Set a tensor's id, as the callback `identify` of heft_convert_options; ctx is the identities.
 * Call once per tensor, in the order of the file. */
bool identities_identify(void *ctx, const heft_tensor *t, heft_identity *id);
void identities_release(identities *r);

typedef struct gptrs_rules {
    glob_rules grads;
    const char *base_ids; /* "name", "none", or NULL if not given */
    bool no_memory;       /* a pattern could not be matched */
} gptrs_rules;

bool gptrs_are_given(const gptrs_rules *r);
/* Parse the options. Return an exit code; cmd is the command named in the error line. */
int gptrs_prepare(gptrs_rules *r, const char *cmd);
/* Refuse --base-ids unless the target is a gpt-rs format. Return an exit code. */
int gptrs_check_target(const gptrs_rules *r, const heft_format *target, const char *path);
/* Change *id, the identity of tensor t, as the options ask; return whether *id changed. name is the
 * tensor's name in the output. keeps_ids, for edit: stored ids stay unless an option changes them;
 * otherwise the format derives base ids from names. Without memory for a pattern r->no_memory is
 * set, and *id is made invalid. */
bool identity_of(identities *ids, gptrs_rules *r, const heft_tensor *t, heft_str name,
                 bool keeps_ids, heft_identity *id);
void gptrs_release(gptrs_rules *r);

typedef struct assignment {
    heft_value value;       /* a list is a text here, as given */
    const char *text;       /* the value as given; NULL: from a file */
    bool is_typed, is_list; /* KEY:TYPE=... or KEY:[TYPE]=[...]; is_list: the latter */
    heft_kind element;      /* the kind of TYPE, and */
    heft_dtype stored;      /* its element type, or HEFT_UNTYPED */
} assignment;

typedef struct set_options {
    opt_list args, files;
    assignment *given; /* one per key; the last value of a repeated key counts */
    size_t count;
    heft_str *texts;    /* contents of the files of --set-file */
    heft_value *values; /* values for the library, after set_options_resolve() */
    size_t value_count;
    struct set_list *lists; /* contents of lists; freed with the options */
} set_options;

/* Parse the arguments and read the files. Return an exit code; cmd is the command named in the
 * error line. */
int set_options_prepare(set_options *s, const char *cmd);
/* Add metadata before the values of the options, which take precedence. Return false without
 * memory. */
bool set_options_add(set_options *s, const heft_value *values, size_t count);
/* Make s->values: a value without a type gets the kind of the file's value under the same key, and
 * is refused if the text has another form. can_list: the target stores lists, so [...] is a list.
 * Return an exit code. */
int set_options_resolve(set_options *s, const heft_file *f, bool can_list, const char *path);
void set_options_release(set_options *s);

typedef struct rules {
    opt_list keep, drop, transpose, densify; /* arguments */
    renames rename;
    cast_rules cast;
    glob_rules sparsify;
    storage_rules storage;
    identities ids;
    set_options set;
    gptrs_rules gptrs;
    /* EMBD names: remove the prefix "bert." and drop position_ids. */
    bool encoder;
    bool raw_tensors; /* cast parts of quantised tensors as numbers */
    bool is_decoded;  /* by --dequantize: no tensor is quantised any more */
    /* The types that --quantize has chosen for the tensors of `mixed`; or NULL. */
    const heft_mix *mix;
    const heft_file *mixed;
    heft_schemes *schemes; /* found in the input if tensors are cast or transposed; else NULL */
    bool no_memory;        /* out of memory in a callback; the callback then ends the conversion */
    struct job *job;       /* the job of the conversion, for its progress */
} rules;

/* Parse the options, and store how parts without a matching pattern are stored in *o. Return an
 * exit code; cmd is the command named in the error line. */
int rules_prepare(rules *r, const char *cmd, heft_write_options *o);
/* Set the callbacks of a conversion that the rules need; their context is r. */
void rules_set(rules *r, heft_convert_options *o);
void rules_release(rules *r);

/* ---- with a mix, mix_rules.c ---- */

/* Return the type that the mix gives a tensor. */
heft_dtype rules_mix_type(const rules *r, const heft_tensor *t);
/* Return what becomes of a tensor of r->mixed: by --cast, or else by the mix. */
heft_mix_item rules_mix_item(rules *r, uint32_t tensor);
/* Return the importance of its columns: the callback `importance` of heft_convert_options. */
const float *rules_mix_importance(void *ctx, const heft_tensor *t, uint64_t *count);

/* Find the quantised tensors of the file. Report patterns and expressions that no tensor of the
 * file matches. Return CODE_USAGE if --keep and --drop leave no tensor, or if a pattern matches
 * nothing and --strict is given; or another exit code. */
int rules_check(rules *r, const session *s, const heft_file *f, const char *path);

#endif
