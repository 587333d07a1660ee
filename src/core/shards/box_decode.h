/* box_decode.h - a box that is stored compressed: the decoded file. */
#ifndef HEFT_BOX_DECODE_H
#define HEFT_BOX_DECODE_H
#include "core/read/strided.h"
#include "model/boxes.h"

typedef struct heft_decoded_box {
    heft_source base; /* shows the content; first member */
    heft_spill spill;
} heft_decoded_box;

/* Decode box `box` of row `row` of heft_index.assembled as a whole, into memory or scratch space.
 * The content may be a little larger than the elements, and not more.  Call
 * heft_decoded_box_close() whatever is returned.  HEFT_E_UNSUPPORTED: the host has no codec. */
heft_status heft_decoded_box_open(heft_decoded_box *out, const heft_file *f, uint32_t row,
                                  uint32_t box, heft_error *err);
void heft_decoded_box_close(heft_decoded_box *d);

#endif
