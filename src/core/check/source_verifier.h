/* source_verifier.h - the checksums of a source, checked while it is copied: what passes by is not read
 * twice, and what does not pass by is read on its own. */
#ifndef HEFT_SOURCE_VERIFIER_H
#define HEFT_SOURCE_VERIFIER_H
#include "core/check/checksum_sweep.h"
#include "core/read/partial_crcs.h"

typedef enum heft_part_use { /* what becomes of a part of the source */
                             HEFT_PART_UNUSED,
                             HEFT_PART_COPIED,
                             HEFT_PART_CHECKED_BEFORE /* what is written comes from it, but it is not copied: it is checked beforehand */
} heft_part_use;
typedef heft_part_use (*heft_part_use_fn)(void *ctx, uint32_t part);

typedef struct heft_source_verifier {
    const heft_file *f;
    heft_memory mem;
    heft_partial_crcs crcs;      /* stored bytes, by their place in the source */
    heft_checksum_state *states; /* by claim */
    uint8_t *check_time;         /* by claim: judged when the copy is complete */
    uint32_t checksums;
    bool is_disabled; /* nothing is checked */
} heft_source_verifier;

/* Judges what will not pass by; HEFT_E_CHECKSUM before anything is written.  passing tells of
 * each part.  off: checks nothing. */
heft_status heft_source_verifier_begin(heft_source_verifier *v, const heft_file *f,
                                       bool is_disabled, heft_part_use_fn part_use, void *ctx,
                                       heft_error *err);
/* HEFT_E_CHECKSUM at the first broken claim of those judged so far; advisory: those that are advisory count as well. */
heft_status heft_source_verifier_require(const heft_source_verifier *v, bool advisory,
                                         heft_error *err);
/* Judges every claim now, but those over decoded bytes; nothing is left for heft_source_verifier_end(). */
heft_status heft_source_verifier_check_now(heft_source_verifier *v, heft_error *err);
/* Whether a claim is one that heft_source_verifier_begin() did not judge. */
static inline bool heft_source_verifier_is_pending(const heft_source_verifier *v, uint32_t checksum)
{
    return !v->is_disabled && v->check_time[checksum];
}
/* All claims and contents, without a copy: HEFT_E_CHECKSUM or HEFT_E_FORMAT at the first fault. */
heft_status heft_check_all(const heft_file *f, heft_error *err);
/* The claim of a part that only its bytes in order can settle, or HEFT_NONE. */
uint32_t heft_source_verifier_ordered_checksum(const heft_source_verifier *v, uint32_t part);
void heft_source_verifier_compare(heft_source_verifier *v, uint32_t checksum, const uint8_t *digest,
                                  uint32_t bytes);
/* Stored bytes on their way. */
heft_status heft_source_verifier_add(heft_source_verifier *v, uint64_t is_disabled,
                                     const void *data, size_t len, heft_error *err);
/* Judges the rest. */
heft_status heft_source_verifier_end(heft_source_verifier *v, heft_error *err);
void heft_source_verifier_free(heft_source_verifier *v);

#endif
