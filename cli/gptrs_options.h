/* gptrs_options.h - what stands behind --requires-grad and --base-ids: what gpt-rs knows of a tensor. */
#ifndef HEFT_CLI_GPTRS_OPTIONS_H
#define HEFT_CLI_GPTRS_OPTIONS_H
#include "cmd.h"
#include "glob_rules.h"
#include "identity.h"

typedef struct gptrs_rules {
    glob_rules grads;
    const char *base_ids; /* "name", "none", or NULL: not given */
    bool no_memory;       /* for a pattern: no identity can be told */
} gptrs_rules;

bool gptrs_are_given(const gptrs_rules *r);
/* Makes sense of the options, in the name of the command who.  Not CODE_DONE: said why not. */
int gptrs_prepare(gptrs_rules *r, const char *cmd);
/* Base ids are for gpt-rs' own files.  Not CODE_DONE: said that the target is none. */
int gptrs_check_target(const gptrs_rules *r, const heft_format *target, const char *path);
/* Change *id, the identity of tensor t, as the options ask; return whether *id changed.  name: the tensor's name in the
 * output.  keeps_ids: stored ids stay unless an option changes them, as in an edit; otherwise the format derives base
 * ids from names. */
bool identity_of(identities *ids, gptrs_rules *r, const heft_tensor *t, heft_str name,
                 bool keeps_ids, heft_identity *id);
/* After all tensors: warns of patterns that none of them matched.  Not CODE_DONE: there was no memory, which is said. */
int gptrs_check(const gptrs_rules *r, const char *path);
void gptrs_release(gptrs_rules *r);

#endif
