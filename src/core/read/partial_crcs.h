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
/* Forget all segments; the algorithms stay. */
static inline void heft_partial_crcs_clear(heft_partial_crcs *s)
{
    s->segments.len = 0;
}
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
/* Offsets that joined segments may not cross, because a checksum begins or ends there. */
typedef struct heft_borders {
    heft_vec at; /* uint64_t, ascending once heft_borders_sort() was called */
    heft_memory mem;
} heft_borders;
void heft_borders_init(heft_borders *b, const heft_host *h);
/* Add both ends of a range; false: out of memory. */
bool heft_borders_add(heft_borders *b, heft_range r);
bool heft_borders_sort(heft_borders *b); /* false: out of memory */
void heft_borders_free(heft_borders *b);
/* Sort, and join adjacent segments between borders, so that few segments remain.  A segment that
 * overlaps the ones before it is dropped. */
void heft_partial_crcs_compact(heft_partial_crcs *s, const heft_borders *b);
/* Read segment i, below s->segments.len; return the states, one for each of s->digests. */
const uint32_t *heft_partial_crcs_at(const heft_partial_crcs *s, uint32_t i, heft_range *r);
/* Add a segment with known states, on one thread. */
heft_status heft_partial_crcs_put(heft_partial_crcs *s, heft_range r, const uint32_t *states,
                                  heft_error *err);
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
