/* source_verifier.h - compares the checksums that a file stores while the file is copied.  CRCs
 * are computed from the bytes that the copy reads; bytes that a checksum covers outside of the
 * copied parts are read in addition, and a digest that cannot be joined from pieces is compared by
 * the stream of the part, or before the copy. */
#ifndef HEFT_SOURCE_VERIFIER_H
#define HEFT_SOURCE_VERIFIER_H
#include "core/check/checksum_sweep.h"
#include "core/read/partial_crcs.h"

/* How a conversion uses a part of the source. */
typedef enum heft_part_use {
    HEFT_PART_UNUSED, /* the checksum of the part is not compared */
    HEFT_PART_COPIED, /* every byte is read once, so that the checksum is compared on the way */
    HEFT_PART_CHECKED_BEFORE /* bytes are read out of order: compared before the first write */
} heft_part_use;
typedef heft_part_use (*heft_part_use_fn)(void *ctx, uint32_t part);

typedef struct heft_source_verifier {
    const heft_file *f;
    heft_memory mem;
    heft_partial_crcs crcs;      /* CRCs of copied bytes, by stored offset */
    heft_checksum_state *states; /* by checksum */
    uint8_t *check_time;         /* by checksum: time of the comparison; 0: before the copy */
    uint32_t checksums;
    bool is_disabled; /* nothing is checked */
} heft_source_verifier;

/* Verify the checksums that the copy will not cover; HEFT_E_CHECKSUM before anything is written.
 * part_use() is called for parts.  is_disabled: verify nothing. */
heft_status heft_source_verifier_begin(heft_source_verifier *v, const heft_file *f,
                                       bool is_disabled, heft_part_use_fn part_use, void *ctx,
                                       heft_error *err);
/* Only choose when each checksum would be verified. */
heft_status heft_source_verifier_choose(heft_source_verifier *v, const heft_file *f,
                                        bool is_disabled, heft_part_use_fn part_use, void *ctx,
                                        heft_error *err);
/* Begin like heft_source_verifier_begin(), for one share of a copy.  Of the checksums that have to
 * be compared before the copy, this share compares the checksums of the parts for which is_own()
 * returns true, and of bytes outside of parts if is_own(ctx, HEFT_NONE) returns true; the other
 * shares compare the rest. */
heft_status heft_source_verifier_begin_share(heft_source_verifier *v, const heft_file *f,
                                             bool is_disabled, heft_part_use_fn part_use,
                                             bool (*is_own)(void *ctx, uint32_t part), void *ctx,
                                             heft_error *err);
/* Join the CRCs of adjacent copied bytes, up to the offsets where a checksum begins or ends. */
heft_status heft_source_verifier_compact(heft_source_verifier *v, heft_error *err);
/* Return HEFT_E_CHECKSUM for the first mismatch found so far.  advisory: advisory checksums count
 * too. */
heft_status heft_source_verifier_require(const heft_source_verifier *v, bool advisory,
                                         heft_error *err);
/* Verify every checksum over stored bytes now; leaves nothing for heft_source_verifier_end(). */
heft_status heft_source_verifier_check_now(heft_source_verifier *v, heft_error *err);
/* Return true if heft_source_verifier_begin() has left the checksum for later. */
static inline bool heft_source_verifier_is_pending(const heft_source_verifier *v, uint32_t checksum)
{
    return !v->is_disabled && v->check_time[checksum];
}
/* Verify all checksums and decoded parts without copying: HEFT_E_CHECKSUM or HEFT_E_FORMAT at the
 * first fault. */
heft_status heft_check_all(const heft_file *f, heft_error *err);
/* Verify, without copying, the checksums that heft_source_verifier_begin() and
 * heft_source_verifier_end() verify with the same uses of the parts, except digests of decoded
 * bytes. */
heft_status heft_check_used(const heft_file *f, heft_part_use_fn part_use, void *ctx,
                            heft_error *err);
/* Return the checksum of a part that must be computed over bytes in order, or HEFT_NONE. */
uint32_t heft_source_verifier_ordered_checksum(const heft_source_verifier *v, uint32_t part);
void heft_source_verifier_compare(heft_source_verifier *v, uint32_t checksum, const uint8_t *digest,
                                  uint32_t bytes);
/* Add stored bytes that were copied. */
heft_status heft_source_verifier_add(heft_source_verifier *v, uint64_t offset, const void *data,
                                     size_t len, heft_error *err);
/* Verify the remaining checksums. */
heft_status heft_source_verifier_end(heft_source_verifier *v, heft_error *err);
void heft_source_verifier_free(heft_source_verifier *v);

#endif
