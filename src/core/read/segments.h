/* segments.h - checksums of pieces of a file, in whatever order they pass by, joined to those of
 * the ranges that somebody asks for. */
#ifndef HEFT_SEGMENTS_H
#define HEFT_SEGMENTS_H
#include "core/read/file.h"

enum { HEFT_SEGMENT_DIGESTS = 2 }; /* CRC-32 and CRC-32C */

typedef struct heft_segments {
    const heft_allocator *al;
    const heft_digest *digests[HEFT_SEGMENT_DIGESTS];
    uint32_t digest_count;
    heft_vec list; /* guarded by lock while there are several workers */
    uint32_t lock;
} heft_segments;

void heft_segments_init(heft_segments *s, const heft_host *h);
void heft_segments_free(heft_segments *s);
/* Whether segments can hold the digest: it is joined from pieces, and its state is that of a CRC. */
static inline bool heft_segments_take(const heft_digest *d)
{
    return heft_digest_joins(d) && d->state_bytes == sizeof(uint32_t);
}
/* Computes this algorithm from now on; false when it cannot be joined from pieces. */
bool heft_segments_want(heft_segments *s, const heft_host *h, const char *algorithm);
/* These bytes lie at off.  From several threads at once; pieces must not overlap. */
heft_status heft_segments_add(heft_segments *s, uint64_t off, const void *data, size_t len,
                              heft_error *err);
void heft_segments_sort(heft_segments *s);
/* Carries state over [r.offset, r.offset + r.length); after heft_segments_sort().  Bytes that did not
 * pass by, or only within a larger piece, are asked of missing, which updates the state itself;
 * without it they are an error. */
heft_status heft_segments_join(const heft_segments *s, const char *algorithm, heft_range r,
                               void *state,
                               heft_status (*missing)(void *ctx, const heft_digest *d, heft_range r,
                                                      void *state, heft_error *err),
                               void *ctx, heft_error *err);

#endif
