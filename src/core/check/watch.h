/* watch.h - the checksums of a source, checked while it is copied: what passes by is not read
 * twice, and what does not pass by is read on its own. */
#ifndef HEFT_WATCH_H
#define HEFT_WATCH_H
#include "core/check/sweep.h"
#include "core/read/segments.h"

typedef enum heft_passing { /* what becomes of a part of the source */
                            HEFT_LEFT_OUT,
                            HEFT_COPIED,
                            HEFT_TIED /* what is written comes from it, but it is not copied: it is checked beforehand */
} heft_passing;
typedef heft_passing (*heft_passing_fn)(void *ctx, uint32_t part);

typedef struct heft_watch {
    const heft_file *f;
    heft_memory mem;
    heft_segments seen;       /* stored bytes, by their place in the source */
    heft_claim_state *states; /* by claim */
    uint8_t *later;           /* by claim: judged when the copy is complete */
    uint32_t count;
    bool off; /* nothing is checked */
} heft_watch;

/* Judges what will not pass by; HEFT_E_CHECKSUM before anything is written.  passing tells of
 * each part.  off: checks nothing. */
heft_status heft_watch_begin(heft_watch *w, const heft_file *f, bool off, heft_passing_fn passing,
                             void *ctx, heft_error *err);
/* HEFT_E_CHECKSUM at the first broken claim of those judged so far; advisory: those that are advisory count as well. */
heft_status heft_watch_demand(const heft_watch *w, bool advisory, heft_error *err);
/* Judges every claim now, but those over decoded bytes; nothing is left for heft_watch_end(). */
heft_status heft_watch_sweep(heft_watch *w, heft_error *err);
/* Whether a claim is one that heft_watch_begin() did not judge. */
static inline bool heft_watch_is_left(const heft_watch *w, uint32_t claim)
{
    return !w->off && w->later[claim];
}
/* All claims and contents, without a copy: HEFT_E_CHECKSUM or HEFT_E_FORMAT at the first fault. */
heft_status heft_check_all(const heft_file *f, heft_error *err);
/* The claim of a part that only its bytes in order can settle, or HEFT_NONE. */
uint32_t heft_watch_tap(const heft_watch *w, uint32_t part);
void heft_watch_settle(heft_watch *w, uint32_t claim, const uint8_t *digest, uint32_t bytes);
/* Stored bytes on their way. */
heft_status heft_watch_seen(heft_watch *w, uint64_t off, const void *data, size_t len,
                            heft_error *err);
/* Judges the rest. */
heft_status heft_watch_end(heft_watch *w, heft_error *err);
void heft_watch_free(heft_watch *w);

#endif
