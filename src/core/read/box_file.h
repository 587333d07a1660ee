/* box_file.h - the files and checksums of boxes (model/boxes.h), of which tensors are assembled. */
#ifndef HEFT_BOX_FILE_H
#define HEFT_BOX_FILE_H
#include "core/read/file.h"
#include "model/boxes.h"

/* Check that the range of box `box` of row `row` of heft_index.assembled lies in its file.  If the
 * range holds a file, check the type, shape and checksum of its tensor.  HEFT_OK if the shard is
 * missing. */
heft_status heft_box_verify(const heft_file *f, uint32_t row, uint32_t box, heft_error *err);
/* Set *offset to the global offset of the elements of box `box` of row `row` of
 * heft_index.assembled: in a file inside of the range, the data of its only tensor, which must have
 * the type and the shape of the box. */
heft_status heft_box_find_elements(uint64_t *offset, const heft_file *f, uint32_t row, uint32_t box,
                                   heft_error *err);

/* Read the boxes of the assembled parts for which is_chosen() returns true, and compare the
 * checksums that are stored for them: HEFT_E_CHECKSUM at the first that does not match;
 * box_checksums.c.  The bytes of a part that is assembled have no checksum of their own. */
heft_status heft_box_checksums_check(const heft_file *f,
                                     bool (*is_chosen)(void *ctx, uint32_t part), void *ctx,
                                     heft_error *err);
/* Do so for one part, if it is assembled. */
heft_status heft_box_checksums_check_part(const heft_file *f, uint32_t part, heft_error *err);

#endif
