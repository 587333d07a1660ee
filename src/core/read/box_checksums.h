/* box_checksums.h - the checksums that are stored for the boxes of assembled tensors. */
#ifndef HEFT_BOX_CHECKSUMS_H
#define HEFT_BOX_CHECKSUMS_H
#include "core/read/file.h"

/* Read the boxes of the assembled parts for which is_chosen() returns true, and compare the
 * checksums that are stored for them: HEFT_E_CHECKSUM at the first that does not match.  The bytes
 * of a part that is assembled have no checksum of their own. */
heft_status heft_box_checksums_check(const heft_file *f,
                                     bool (*is_chosen)(void *ctx, uint32_t part), void *ctx,
                                     heft_error *err);
/* Do so for one part, if it is assembled. */
heft_status heft_box_checksums_check_part(const heft_file *f, uint32_t part, heft_error *err);

#endif
