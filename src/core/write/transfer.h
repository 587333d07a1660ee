/* transfer.h - what a file says, in the model of a file that is to be written. */
#ifndef HEFT_TRANSFER_H
#define HEFT_TRANSFER_H
#include "core/write/plan.h"

/* Value i of `from` with all its children: of the metadata or, unless source is HEFT_NONE, of the
 * attributes of that tensor, for tensor id of the model. */
heft_status heft_transfer_value(heft_planner *p, const heft_index *from, uint32_t i,
                                uint32_t source, uint32_t id);
/* All that is said of a tensor besides type and shape; cast: it has got another type, so that what was
 * said of the stored one holds no longer.  identity: that the tensor gets, or NULL: the one that it has. */
heft_status heft_transfer_attributes(heft_planner *p, const heft_index *from, uint32_t id,
                                     uint32_t source, bool cast, const heft_identity *identity);

#endif
