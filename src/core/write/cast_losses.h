/* cast_losses.h - values that casts lose, counted while they are cast and said by tensor.  docs/casting.md */
#ifndef HEFT_CAST_LOSSES_H
#define HEFT_CAST_LOSSES_H
#include "core/write/copy.h"

/* Have the copy count, when some cast in it can lose a value; c->lost stays NULL otherwise. */
heft_status heft_cast_losses_begin(heft_copying *c, heft_error *err);
/* Count without a copy, reading what will be cast.  The meter of c learns of no bytes, but can stop it. */
heft_status heft_cast_losses_count(heft_copying *c, heft_error *err);
/* A loss of rule "heft/cast" for each tensor with values that were lost.  HEFT_E_LOSSY: they stop the conversion. */
heft_status heft_cast_losses_report(const heft_copying *c, heft_error *err);

#endif
