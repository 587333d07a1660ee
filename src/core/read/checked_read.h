/* checked_read.h - the checksums of many parts that are read as a whole, by several threads and in any order: digests of
 * parts, and checksums of ranges all of whose parts are read. */
#ifndef HEFT_CHECKED_READ_H
#define HEFT_CHECKED_READ_H
#include "core/read/partial_crcs.h"

struct heft_checked_read {
    const heft_file *f;
    heft_memory mem;
    heft_partial_crcs crcs; /* stored bytes of parts that are not read in order, by their place */
    heft_vec checksums;     /* numbers of those that are judged at the end */
    bool is_chunked;        /* parts are read in pieces, in any order */
    bool is_enabled;
};

/* parts: those that will be read, count of them; NULL: all of all tensors.  is_on: otherwise nothing is checked.
 * splits: what can be joined from pieces is expected so; otherwise parts come through streams. */
heft_status heft_checked_read_begin(heft_checked_read *r, const heft_file *f, bool is_enabled,
                                    bool is_chunked, const uint32_t *parts, uint32_t count,
                                    heft_error *err);
/* The digest for which the part has to be read from its first byte on, with heft_stream_check(); or HEFT_NONE. */
uint32_t heft_checked_read_in_order(const heft_checked_read *r, uint32_t part);
void heft_checked_read_free(heft_checked_read *r); /* one of zeros is harmless */

#endif
