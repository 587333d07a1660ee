/* box_file.h - the files that boxes (model/boxes.h) of assembled tensors are. */
#ifndef HEFT_BOX_FILE_H
#define HEFT_BOX_FILE_H
#include "core/shards/box_decode.h"

/* Check that the range of box `box` of row `row` of heft_index.assembled lies in its file.  If the
 * range holds a file, check the type, shape and checksum of its tensor; *is_compared (may be NULL):
 * it has a checksum, which was compared.  HEFT_OK if the shard is missing. */
heft_status heft_box_verify(const heft_file *f, uint32_t row, uint32_t box, bool *is_compared,
                            heft_error *err);
/* Set *offset to the global offset of the elements of box `box` of row `row` of
 * heft_index.assembled: in a file inside of the range, the data of its only tensor, which must have
 * the type and the shape of the box.  Not for a file that is compressed. */
heft_status heft_box_find_elements(uint64_t *offset, const heft_file *f, uint32_t row, uint32_t box,
                                   heft_error *err);
/* Decode a box whose file is compressed, and set *offset to the offset of the elements in the
 * content, likewise.  Call heft_decoded_box_close() whatever is returned. */
heft_status heft_box_open_decoded(heft_decoded_box *out, uint64_t *offset, const heft_file *f,
                                  uint32_t row, uint32_t box, heft_error *err);

#endif
