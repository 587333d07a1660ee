/* gptrs_options.h - the options --requires-grad and --base-ids for gpt-rs files. */
#ifndef HEFT_CLI_GPTRS_OPTIONS_H
#define HEFT_CLI_GPTRS_OPTIONS_H
#include "cmd.h"
#include "glob_rules.h"
#include "identity.h"

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

#endif
