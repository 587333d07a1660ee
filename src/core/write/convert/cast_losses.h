/* cast_losses.h - count the values that casts lose, and report the counts by tensor.
 * docs/casting.md */
#ifndef HEFT_CAST_LOSSES_H
#define HEFT_CAST_LOSSES_H
#include "core/write/convert/copy.h"

/* Make the copy count lost values if some cast can lose any; otherwise c->lost stays NULL. */
heft_status heft_cast_losses_begin(heft_copy_context *c, heft_error *err);
/* Count lost values by reading everything that will be cast, without a copy.  Adds no bytes to
 * the progress of c, but the progress callback can stop the pass. */
heft_status heft_cast_losses_count(heft_copy_context *c, heft_error *err);
/* Report a loss of rule "heft/cast" for each tensor that loses values.  HEFT_E_LOSSY: the losses
 * stop the conversion. */
heft_status heft_cast_losses_report(const heft_copy_context *c, heft_error *err);

#endif
