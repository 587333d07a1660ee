/* partial_crcs.h - CRCs of segments of a file, collected in any order and joined to the CRC of a
 * range. */
#ifndef HEFT_PARTIAL_CRCS_H
#define HEFT_PARTIAL_CRCS_H
#include "core/read/file.h"

enum { HEFT_PARTIAL_CRC_KINDS = 2 }; /* CRC-32 and CRC-32C */

typedef struct heft_crc_segment {
    uint64_t offset, len;
    uint32_t state[HEFT_PARTIAL_CRC_KINDS]; /* in the order of heft_partial_crcs.digests */
} heft_crc_segment;

typedef struct heft_partial_crcs {
    const heft_allocator *al;
    const heft_digest *digests[HEFT_PARTIAL_CRC_KINDS];
    uint32_t digest_count;
    heft_vec segments; /* heft_crc_segment; guarded by lock while several workers run */
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
/* Return the position of the algorithm in s->digests, or s->digest_count. */
uint32_t heft_partial_crcs_index(const heft_partial_crcs *s, const char *algorithm);
/* Compute this algorithm from now on.  Return false if its states cannot be joined. */
bool heft_partial_crcs_track(heft_partial_crcs *s, const heft_host *h, const char *algorithm);
static inline bool heft_partial_crcs_tracks(const heft_partial_crcs *s, const char *algorithm)
{
    return heft_partial_crcs_index(s, algorithm) < s->digest_count;
}
/* Compute the CRCs of a segment from its bytes in order. */
heft_crc_segment heft_crc_segment_begin(const heft_partial_crcs *s, uint64_t offset);
void heft_crc_segment_update(heft_crc_segment *segment, const heft_partial_crcs *s,
                             const void *data, size_t len);
/* Add a segment.  Thread-safe; segments must not overlap. */
heft_status heft_partial_crcs_put(heft_partial_crcs *s, const heft_crc_segment *added,
                                  heft_error *err);
/* Add the bytes at offset as a segment. */
heft_status heft_partial_crcs_add(heft_partial_crcs *s, uint64_t offset, const void *data,
                                  size_t len, heft_error *err);
void heft_partial_crcs_sort(heft_partial_crcs *s);
/* An offset where ranges that a checksum covers begin or end. */
typedef struct heft_border {
    uint64_t at;
    int64_t change; /* 1: a range begins; -1: a range ends */
} heft_border;
/* Offsets that joined segments may not cross. */
typedef struct heft_borders {
    heft_vec at; /* heft_border, ascending once heft_borders_sort() was called */
    heft_memory mem;
} heft_borders;
void heft_borders_init(heft_borders *b, const heft_host *h);
/* Add both ends of a range, unless the range is empty; false: out of memory. */
bool heft_borders_add(heft_borders *b, heft_range r);
bool heft_borders_sort(heft_borders *b); /* false: out of memory */
void heft_borders_free(heft_borders *b);
/* Sort, and join adjacent segments between borders, so that few segments remain.  A segment that
 * overlaps the ones before it is dropped. */
void heft_partial_crcs_compact(heft_partial_crcs *s, const heft_borders *b);
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
