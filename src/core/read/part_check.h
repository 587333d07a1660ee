/* part_check.h - the digest of one part, computed while the part is read from its first byte to its last. */
#ifndef HEFT_PART_CHECK_H
#define HEFT_PART_CHECK_H
#include "core/read/partial_crcs.h"
#include "core/read/running_digest.h"

typedef struct heft_part_check {
    const heft_file *f;
    heft_running_digest digest; /* of none: nothing is checked */
    uint32_t part, checksum;
    bool decoded;  /* the digest covers the decoded bytes, not the stored ones */
    uint64_t next; /* place of the next stored byte that the digest needs */
    uint64_t end;  /* place behind the last one */
} heft_part_check;

/* The checksum that reading the whole part makes checkable, or HEFT_NONE.  all: also one that covers many more bytes
 * than the part has. */
uint32_t heft_part_checksum(const heft_file *f, uint32_t part, bool all);
/* heft_ix_checksum_at(), whose text the file lends: an error when the file has been cut short. */
heft_status heft_stored_checksum_get(heft_stored_checksum *out, const heft_file *f,
                                     uint32_t checksum, heft_error *err);
/* claim: HEFT_NONE, or one from heft_part_checksum().  Without the algorithm in this build nothing is checked.
 * Releasing a zeroed one is harmless. */
heft_status heft_part_check_begin(heft_part_check *k, const heft_file *f, uint32_t part,
                                  uint32_t checksum, heft_error *err);
void heft_part_check_release(heft_part_check *k);
static inline bool heft_part_check_is_on(const heft_part_check *k)
{
    return k->digest.digest;
}
/* Stored bytes at a place, in ascending order.  Bytes of the checksum that were passed over are read. */
heft_status heft_part_check_stored(heft_part_check *k, uint64_t offset, const void *data,
                                   size_t len, heft_error *err);
/* The next decoded bytes of a compressed part. */
void heft_part_check_decoded(heft_part_check *k, const void *data, size_t len);
/* After the last byte; reads those that the checksum covers and that were not seen.  HEFT_E_CHECKSUM; releases. */
heft_status heft_part_check_end(heft_part_check *k, heft_error *err);
/* HEFT_E_CHECKSUM: sets the message of a checksum that is wrong. */
heft_status heft_checksum_mismatch_error(const heft_file *f, uint32_t checksum, uint32_t part,
                                         heft_error *err);
/* Whether a checksum holds that is joined from sorted segments; bytes that none of them has are read. */
heft_status heft_stored_checksum_join_crcs(bool *holds, const heft_stored_checksum *c,
                                           const heft_file *f, const heft_partial_crcs *crcs,
                                           heft_error *err);
/* Updates a digest with stored bytes of the file. */
heft_status heft_digest_stored(const heft_file *f, const heft_digest *d, void *state, heft_range r,
                               heft_error *err);

#endif
