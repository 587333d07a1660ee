/* refuse.h - refuse changes that take parts of quantised tensors for numbers. */
#ifndef HEFT_REFUSE_H
#define HEFT_REFUSE_H
#include "core/read/file.h"

/* Get the quantised tensors of a file that names, types and shapes show.  They are found once, and
 * closed with the file.  Thread-safe. */
heft_status heft_schemes_of_file(const heft_schemes **out, const heft_file *f, heft_error *err);
/* Return HEFT_E_UNSUPPORTED, with the rule "heft/quantised", if the tensor is part of a quantised
 * tensor of s; NULL: of heft_schemes_of_file().  `change` names the change in the message, "a
 * cast", and `hint` ends the message.  Thread-safe. */
heft_status heft_refuse_part(const heft_file *f, const heft_schemes *s, uint32_t tensor,
                             const char *change, const char *hint, heft_error *err);
/* Refuse a cast by a function that reads, unless the file was opened with raw_tensors. */
heft_status heft_refuse_cast(const heft_file *f, uint32_t tensor, heft_error *err);

#endif
