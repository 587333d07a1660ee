/* comparison_share.h - a comparison of two models, computed in shares. The rows of the records are
 * the pairs of tensors with the same name, the lonely tensors of A, and those of B. */
#ifndef HEFT_CLI_COMPARISON_SHARE_H
#define HEFT_CLI_COMPARISON_SHARE_H
#include "comparison.h"
#include "result_share.h"

enum { COMPARISON_WORDS = 12 };
/* Run the comparison as the options of shares say: write the record of a share, which leaves c
 * without results, join all records, or compare everything. Return an exit code. */
int comparison_run_shares(comparison *c, result_share *r);

#endif
