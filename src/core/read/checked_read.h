/* checked_read.h - chooses the checksums that are compared while many parts are read completely, by
 * several threads and in any order: the digests of parts, and checksums of ranges that contain only
 * parts being read. */
#ifndef HEFT_CHECKED_READ_H
#define HEFT_CHECKED_READ_H
#include <heft/check.h>

#include "core/read/ledger.h"

struct heft_checked_read {
    heft_ledger ledger;
    bool is_chunked; /* parts are read in chunks, in any order */
};

/* Begin reading `count` parts, or with parts NULL the parts of all tensors.  Without is_enabled
 * nothing is checked.  is_chunked: digests that can be joined are joined from chunks; otherwise
 * each part comes through a stream.  heft_ledger_in_order() names the digest of a part that must be
 * read in order; free the ledger afterwards. */
heft_status heft_checked_read_begin(heft_checked_read *r, const heft_file *f, bool is_enabled,
                                    bool is_chunked, const uint32_t *parts, uint32_t count,
                                    heft_error *err);

#endif
