/* rules.h - options that change a model: patterns, renames, casts, metadata, identities. */
#ifndef HEFT_CLI_RULES_H
#define HEFT_CLI_RULES_H
#include <heft/mix.h>

#include "options/cast_rules.h"
#include "options/glob_rules.h"
#include "options/identity.h"
#include "options/opt.h"
#include "options/renames.h"
#include "options/set_options.h"
#include "process/cmd.h"

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
/* Return what becomes of a tensor of r->mixed: by --cast, or else by the mix. */
heft_mix_item rules_mix_item(rules *r, uint32_t tensor);

/* Find the quantised tensors of the file. Report patterns and expressions that no tensor of the
 * file matches. Return CODE_USAGE if --keep and --drop leave no tensor, or if a pattern matches
 * nothing and --strict is given; or another exit code. */
int rules_check(rules *r, const session *s, const heft_file *f, const char *path);

#endif
