/* part_check.h - computes the digest of a part while the part is read from the first byte to the
 * last. */
#ifndef HEFT_PART_CHECK_H
#define HEFT_PART_CHECK_H
#include "core/read/stored_checksum.h"

typedef struct heft_part_check {
    const heft_file *f;
    heft_running_digest digest; /* zeroed: nothing is checked */
    uint32_t part, checksum;
    bool decoded;                 /* the digest covers decoded bytes, not stored bytes */
    uint64_t next;                /* offset of the next stored byte that the digest needs */
    uint64_t end;                 /* offset after the last byte */
    heft_checksum_state *outcome; /* receives the result; NULL: a mismatch is an error */
} heft_part_check;

/* Return the checksum that reading the whole part makes checkable, or HEFT_NONE.  all: even a
 * checksum that covers many more bytes than the part has. */
uint32_t heft_part_checksum(const heft_file *f, uint32_t part, bool all);
/* checksum: from heft_part_checksum(), or HEFT_NONE.  Nothing is checked if this build lacks the
 * algorithm.  Releasing a zeroed struct is harmless. */
heft_status heft_part_check_begin(heft_part_check *k, const heft_file *f, uint32_t part,
                                  uint32_t checksum, heft_error *err);
void heft_part_check_release(heft_part_check *k);
static inline bool heft_part_check_is_on(const heft_part_check *k)
{
    return k->digest.digest;
}
/* Add stored bytes at an offset, in ascending order.  Covered bytes that were skipped are read from
 * the file. */
heft_status heft_part_check_stored(heft_part_check *k, uint64_t offset, const void *data,
                                   size_t len, heft_error *err);
/* Add the next decoded bytes of a compressed part. */
void heft_part_check_decoded(heft_part_check *k, const void *data, size_t len);
/* After the last byte: read the covered bytes that were not seen, compare, and release.
 * HEFT_E_CHECKSUM on a mismatch, unless there is an outcome. */
heft_status heft_part_check_end(heft_part_check *k, heft_error *err);

#endif
