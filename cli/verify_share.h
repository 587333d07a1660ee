/* verify_share.h - findings of `heft verify` in records of shares. */
#ifndef HEFT_CLI_VERIFY_SHARE_H
#define HEFT_CLI_VERIFY_SHARE_H
#include "result_share.h"

/* Verify the share and write the record; faults are in the record. Return an exit code. */
int verify_share(result_share *r, heft_verify_result *result, heft_verify_options *options);
/* Report the findings of all records in the order of a single process. Return an exit code. */
int verify_join(result_share *r, heft_verify_result *result, heft_finding_fn fn, void *ctx);

#endif
