/* quantised_check.h - refuse changes that take parts of quantised tensors for numbers. */
#ifndef HEFT_QUANTISED_CHECK_H
#define HEFT_QUANTISED_CHECK_H
#include "core/write/convert.h"

/* Return HEFT_E_UNSUPPORTED, with the rule "heft/quantised", if the tensor of the input is part of
 * a quantised tensor, unless the caller asked for the stored tensors.  `change` names the change in
 * the message: "a cast". */
heft_status heft_refuse_quantised(heft_conversion *c, uint32_t tensor, const char *change);

#endif
