/* partial_crcs.h - checksums of pieces of a file, in whatever order they pass by, joined to those of
 * the ranges that somebody asks for. */
#ifndef HEFT_PARTIAL_CRCS_H
#define HEFT_PARTIAL_CRCS_H
#include "core/read/file.h"

enum { HEFT_PARTIAL_CRC_KINDS = 2 }; /* CRC-32 and CRC-32C */

typedef struct heft_partial_crcs {
    const heft_allocator *al;
    const heft_digest *digests[HEFT_PARTIAL_CRC_KINDS];
    uint32_t digest_count;
    heft_vec segments; /* guarded by lock while there are several workers */
    uint32_t lock;
} heft_partial_crcs;

void heft_partial_crcs_init(heft_partial_crcs *s, const heft_host *h);
void heft_partial_crcs_free(heft_partial_crcs *s);
/* Whether segments can hold the digest: it is joined from pieces, and its state is that of a CRC. */
static inline bool heft_partial_crcs_supports(const heft_digest *d)
{
    return heft_digest_joins(d) && d->state_bytes == sizeof(uint32_t);
}
/* Computes this algorithm from now on; false when it cannot be joined from pieces. */
bool heft_partial_crcs_track(heft_partial_crcs *s, const heft_host *h, const char *algorithm);
/* These bytes lie at off.  From several threads at once; pieces must not overlap. */
heft_status heft_partial_crcs_add(heft_partial_crcs *s, uint64_t offset, const void *data,
                                  size_t len, heft_error *err);
void heft_partial_crcs_sort(heft_partial_crcs *s);
/* Carries state over [r.offset, r.offset + r.length); after heft_partial_crcs_sort().  Bytes that did not
 * pass by, or only within a larger piece, are asked of missing, which updates the state itself;
 * without it they are an error. */
heft_status heft_partial_crcs_join(const heft_partial_crcs *s, const char *algorithm, heft_range r,
                                   void *state,
                                   heft_status (*missing)(void *ctx, const heft_digest *d,
                                                          heft_range r, void *state,
                                                          heft_error *err),
                                   void *ctx, heft_error *err);

#endif
