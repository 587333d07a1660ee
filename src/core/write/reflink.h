/* reflink.h - data that stay where the disk has them. */
#ifndef HEFT_REFLINK_H
#define HEFT_REFLINK_H
#include "core/write/copy.h"

/* Shares what it can of these parts, which ascend by their offsets in the target.  *shared: the ranges
 * of the target that are done, heft_range, ascending. */
heft_status heft_reflink_parts(const heft_copying *c, const uint32_t *places, uint32_t count,
                               heft_memory *m, heft_vec *shared, heft_error *err);

#endif
