/* box_check.h - checks the boxes of assembled tensors, for `verify`. */
#ifndef HEFT_BOX_CHECK_H
#define HEFT_BOX_CHECK_H
#include <heft/check.h>

#include "core/read/progress.h"

/* Report boxes that pass the end of a file, files inside of boxes that are not as the index states,
 * and copies of boxes that differ.  Add the bytes of those files to the payload of the result. */
heft_status heft_check_boxes(heft_check *c, const heft_file *f, heft_progress *progress,
                             heft_verify_result *result);
/* Return the bytes that heft_check_boxes() reads and adds to the progress. */
uint64_t heft_check_boxes_bytes(const heft_file *f);

#endif
