/* verify_share.h - `heft verify` in shares, computed by several processes and joined. The record of
 * a share:
 *
 *   heft results 3 verify
 *   file HEX                  id of the file
 *   share 2 8
 *   finding NUMBERS           see put_finding()
 *   RULE TEXT
 *   checked BYTES PAYLOAD PAYLOAD_CHECKED
 *   sum HEX                   of the lines before */
#ifndef HEFT_CLI_VERIFY_SHARE_H
#define HEFT_CLI_VERIFY_SHARE_H
#include <heft/check.h>
#include <heft/share.h>

#include "process/cmd.h"

typedef struct verify_shares {
    /* options as given: "I/N", the beginning of the names of records to write, and to join */
    const char *text, *out, *join;
    heft_share own; /* set by verify_shares_prepare(); count 0: not a share */
} verify_shares;

/* Check the options. Return an exit code. */
int verify_shares_prepare(verify_shares *s);
/* Verify the share and write the record; faults are in the record. Return an exit code. */
int verify_share_write(const verify_shares *s, const heft_file *f, const char *path,
                       const heft_verify_options *options);
/* Report the findings of all records in the order of a single process. result is zeroed. Return an
 * exit code. */
int verify_share_join(const verify_shares *s, heft_verify_result *result, const heft_file *f,
                      const char *path, heft_finding_fn fn, void *ctx);

#endif
