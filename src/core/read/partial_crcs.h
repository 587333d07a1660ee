/* partial_crcs.h - CRCs of segments of a file, collected in any order and joined to the CRC of a
 * range. */
#ifndef HEFT_PARTIAL_CRCS_H
#define HEFT_PARTIAL_CRCS_H
#include "core/read/file.h"

enum { HEFT_PARTIAL_CRC_KINDS = 2 }; /* CRC-32 and CRC-32C */

typedef struct heft_partial_crcs {
    const heft_allocator *al;
    const heft_digest *digests[HEFT_PARTIAL_CRC_KINDS];
    uint32_t digest_count;
    heft_vec segments; /* guarded by lock while several workers run */
    uint32_t lock;
} heft_partial_crcs;

void heft_partial_crcs_init(heft_partial_crcs *s, const heft_host *h);
void heft_partial_crcs_free(heft_partial_crcs *s);
/* Return true if the digest is a CRC with joinable states. */
static inline bool heft_partial_crcs_supports(const heft_digest *d)
{
    return heft_digest_joins(d) && d->state_bytes == sizeof(uint32_t);
}
/* Compute this algorithm from now on.  Return false if its states cannot be joined. */
bool heft_partial_crcs_track(heft_partial_crcs *s, const heft_host *h, const char *algorithm);
/* Add the bytes at offset.  Thread-safe; segments must not overlap. */
heft_status heft_partial_crcs_add(heft_partial_crcs *s, uint64_t offset, const void *data,
                                  size_t len, heft_error *err);
void heft_partial_crcs_sort(heft_partial_crcs *s);
/* Extend state by the bytes [r.offset, r.offset + r.length); call after heft_partial_crcs_sort().
 * Bytes outside of segments, or in a segment that extends past the range, are passed to missing(),
 * which updates the state; without missing() they are an error. */
heft_status heft_partial_crcs_join(const heft_partial_crcs *s, const char *algorithm, heft_range r,
                                   void *state,
                                   heft_status (*missing)(void *ctx, const heft_digest *d,
                                                          heft_range r, void *state,
                                                          heft_error *err),
                                   void *ctx, heft_error *err);

#endif
