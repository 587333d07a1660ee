/* reflink.h - share extents of the input with the output on a copy-on-write file system, instead
 * of copying. */
#ifndef HEFT_REFLINK_H
#define HEFT_REFLINK_H
#include "core/write/convert/copy.h"

/* Reflink eligible parts of file_order, which is sorted by offset in the target.  *reflinked: the
 * ranges of the target that are done, heft_range, ascending. */
heft_status heft_reflink_parts(const heft_copy_context *c, const uint32_t *file_order,
                               uint32_t count, heft_memory *m, heft_vec *reflinked,
                               heft_error *err);

#endif
