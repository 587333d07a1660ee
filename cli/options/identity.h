/* identity.h - the options --set-id, --new-ids, --fill-ids and --id-seed for Burn parameter ids,
 * and --requires-grad and --base-ids for gpt-rs files. */
#ifndef HEFT_CLI_IDENTITY_H
#define HEFT_CLI_IDENTITY_H
#include <heft/ids.h>

#include "options/glob_rules.h"
#include "options/opt.h"
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

#endif
