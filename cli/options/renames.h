/* renames.h - the option --rename: new names of tensors, by A=B or s/RE/TEXT/. */
#ifndef HEFT_CLI_RENAMES_H
#define HEFT_CLI_RENAMES_H
#include <heft/editing.h>

#include "models/model.h"
#include "options/opt.h"
#include "text/outbuf.h"

/* Value and help text of the option. */
#define RENAMES_VALUE "A=B|s/RE/TEXT/"
#define RENAMES_HELP  "rename A to B, or as sed -E does; g: every match"

typedef struct renames {
    opt_list args;             /* list of the arguments */
    struct rename_rule *rules; /* one per argument */
    struct stored_name *names; /* new names, valid until renames_release() */
    bool no_memory;            /* a name could not be made; renames_apply() returned the old name */
} renames;

/* Parse the arguments. Return an exit code; cmd is the command named in the error line. */
int renames_prepare(renames *r, const char *cmd);
void renames_release(renames *r); /* safe on a zeroed struct */

/* Return the name after all rules, in the order of the options. Adjacent rules A=B apply at once:
 * a=b and b=a exchange two names. A name with a zero byte matches no expression. */
heft_str renames_apply(renames *r, heft_str name);
/* Return true if some rule is an expression. */
bool renames_have_expressions(const renames *r);
/* Get A and B of rule number i, which is not an expression. */
heft_rename renames_pair(const renames *r, size_t i);

/* Return the names of all tensors of a file after the rules, which the caller frees, or NULL
 * without memory. Marks the rules that match. */
heft_str *renames_apply_to_file(renames *r, const heft_file *f);
/* After renames_apply_to_file(): report rules that have matched nothing. */
void renames_check(unmatched *u, const renames *r);
/* After renames_apply_to_file(): refuse a rule A=B that has matched nothing. Return an exit
 * code. */
int renames_refuse_unknown(const renames *r, const char *path);
/* Refuse new names that two tensors share. names are those of renames_apply_to_file(); only tensors
 * for which keeps() is true count, or all tensors for NULL. Return an exit code. */
int renames_refuse_collisions(const heft_file *f, const char *path, const heft_str *names,
                              bool (*keeps)(void *ctx, const heft_tensor *t), void *ctx);

#endif
