/* stored_checksum.h - a checksum that a file stores: computed from the bytes that it covers, and
 * the errors if it does not match. */
#ifndef HEFT_STORED_CHECKSUM_H
#define HEFT_STORED_CHECKSUM_H
#include "core/read/progress.h"
#include "core/read/running_digest.h"

typedef enum heft_checksum_state {
    HEFT_CHECKSUM_MATCHES,
    HEFT_CHECKSUM_MISMATCH,
    HEFT_CHECKSUM_UNCHECKED /* nothing was compared, or this build lacks the algorithm */
} heft_checksum_state;

/* heft_ix_checksum_at() for text that is mapped: an error if the file has been truncated. */
heft_status heft_stored_checksum_get(heft_stored_checksum *out, const heft_file *f,
                                     uint32_t checksum, heft_error *err);
/* Extend the state of the digest by the bytes of a range. */
typedef heft_status heft_add_range(void *ctx, const heft_digest *d, heft_range r, void *state,
                                   heft_error *err);
/* Compute a checksum; *holds: the checksum matches.  add() is called for each range
 * that is not empty. */
heft_status heft_stored_checksum_compute(bool *holds, const heft_stored_checksum *c,
                                         const heft_digest *d, const heft_allocator *al,
                                         heft_add_range *add, void *ctx, heft_error *err);
/* Add the zero bytes between the two ranges of the checksum to state. */
void heft_stored_checksum_add_zeros(const heft_stored_checksum *c, const heft_digest *d,
                                    void *state);
/* Return HEFT_E_CHECKSUM with the message for a checksum that does not match. */
heft_status heft_stored_checksum_mismatch(const heft_file *f, const heft_stored_checksum *c,
                                          heft_error *err);
/* Return HEFT_E_CHECKSUM with a message that names the checksum and the part. */
heft_status heft_checksum_mismatch_error(const heft_file *f, uint32_t checksum, uint32_t part,
                                         heft_error *err);

typedef void heft_feed_function(void *ctx, const uint8_t *p, size_t len);
/* Call feed for each chunk of stored bytes, in place or read into a buffer, until the progress is
 * halted.  progress may be NULL. */
heft_status heft_pass_stored(const heft_file *f, heft_range r, const heft_progress *progress,
                             heft_feed_function *feed, void *ctx, heft_error *err);
/* Update a digest with stored bytes of the file. */
heft_status heft_digest_stored(const heft_file *f, const heft_digest *d, void *state, heft_range r,
                               heft_error *err);

#endif
