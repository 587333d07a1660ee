/* box_checksums.h - the checksums that are stored for the boxes of assembled tensors. */
#ifndef HEFT_BOX_CHECKSUMS_H
#define HEFT_BOX_CHECKSUMS_H
#include "core/read/file.h"

/* Where the bytes of a part are assembled. */
typedef struct heft_assembled_part {
    const heft_file *file; /* the file, or one that was joined to it; NULL: the part is stored */
    uint32_t row;          /* row of heft_index.assembled of that file */
    uint32_t base;         /* number of that file: see heft_global_offset() */
} heft_assembled_part;
heft_assembled_part heft_assembled_part_of(const heft_file *f, uint32_t part);
/* Set *out to the range, in the files of the model, that has the elements of a box.  Return false
 * if the box is a file of its own, or in a shard that is missing. */
bool heft_assembled_box(heft_range *out, const heft_assembled_part *a, uint32_t box);

/* Find the checksums that are stored for the boxes of the assembled parts for which is_chosen()
 * returns true, NULL: of all; set needed[] of the checksums of f to `way`.  Those in files that
 * boxes are, are compared at once: HEFT_E_CHECKSUM at the first that does not match.  The bytes of
 * a part that is assembled have no checksum of their own. */
heft_status heft_box_checksums_choose(const heft_file *f, uint8_t *needed, uint8_t way,
                                      bool (*is_chosen)(void *ctx, uint32_t part), void *ctx,
                                      heft_error *err);
/* Choose, and compare all at once. */
heft_status heft_box_checksums_check(const heft_file *f,
                                     bool (*is_chosen)(void *ctx, uint32_t part), void *ctx,
                                     heft_error *err);
/* Do so for one part, if it is assembled. */
heft_status heft_box_checksums_check_part(const heft_file *f, uint32_t part, heft_error *err);

#endif
