/* identity.h - what stands behind --set-id, --new-ids, --fill-ids and --id-seed: Burn's ids of tensors. */
#ifndef HEFT_CLI_IDENTITY_H
#define HEFT_CLI_IDENTITY_H
#include "cmd.h"
#include "opt.h"

typedef struct identities {
    opt_list set; /* NAME=ID */
    bool all_new, fill;
    const char *seed;
    struct id_assignment *assigned; /* of set, by name */
    uint64_t *fresh;                /* new ids, for the tensors in their order */
    size_t fresh_count, next;
    bool ran_out; /* the file had got more tensors when it was opened again */
} identities;

/* Burn's id of a tensor: a decimal number, a hexadecimal one behind 0x, or the 13 characters that Burn prints.
 * false: the text is none of these. */
bool identity_read(uint64_t *id, const char *text);

bool identities_are_given(const identities *r);
/* Makes sense of the options, in the name of the command who, for that file, which may be closed afterwards.  keep, which
 * may be NULL, tells which of its tensors count.  Not CODE_DONE: said why not. */
int identities_prepare(identities *r, const char *cmd, const heft_file *f, const char *path,
                       bool (*keep)(void *ctx, const heft_tensor *t), void *ctx);
/* As heft_convert_options.identify; ctx is the identities.  For each tensor once, in the order of the file. */
bool identities_identify(void *ctx, const heft_tensor *t, heft_identity *id);
void identities_release(identities *r);

#endif
