/* decoded_boxes.h - the boxes that are stored compressed and were read last, decoded. */
#ifndef HEFT_DECODED_BOXES_H
#define HEFT_DECODED_BOXES_H
#include "core/shards/box_decode.h"

typedef struct heft_decoded_boxes heft_decoded_boxes;

/* Make an empty collection for a file; NULL: no memory. */
heft_decoded_boxes *heft_decoded_boxes_new(const heft_file *f);
void heft_decoded_boxes_free(heft_decoded_boxes *d);
/* Read bytes [at, at + len) of the elements of a box, which is number `id` of all boxes.  Threads
 * may read at the same time. */
heft_status heft_decoded_boxes_read(heft_decoded_boxes *d, uint32_t id, uint32_t row, uint32_t box,
                                    uint64_t at, void *buf, size_t len, heft_error *err);

#endif
