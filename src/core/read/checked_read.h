/* checked_read.h - verifies checksums while many parts are read completely, by several threads and
 * in any order: the digests of parts, and checksums of ranges that contain only parts being
 * read. */
#ifndef HEFT_CHECKED_READ_H
#define HEFT_CHECKED_READ_H
#include <heft/check.h>

#include "core/read/partial_crcs.h"

struct heft_checked_read {
    const heft_file *f;
    heft_memory mem;
    heft_partial_crcs crcs; /* CRCs of parts that are not read in order, by stored offset */
    heft_vec checksums;     /* numbers of the checksums compared at the end */
    bool is_chunked;        /* parts are read in chunks, in any order */
    bool is_enabled;
};

/* Begin reading `count` parts, or with parts NULL the parts of all tensors.  Without is_enabled
 * nothing is checked.  is_chunked: digests that can be joined are joined from chunks; otherwise
 * each part comes through a stream. */
heft_status heft_checked_read_begin(heft_checked_read *r, const heft_file *f, bool is_enabled,
                                    bool is_chunked, const uint32_t *parts, uint32_t count,
                                    heft_error *err);
/* Return the digest of a part that must be read in order, with heft_stream_check(), or
 * HEFT_NONE. */
uint32_t heft_checked_read_in_order(const heft_checked_read *r, uint32_t part);
void heft_checked_read_free(heft_checked_read *r); /* a zeroed r is harmless */

#endif
