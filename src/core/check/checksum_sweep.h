/* checksum_sweep.h - verifies all checksums of a file in one pass over the covered bytes. */
#ifndef HEFT_CHECKSUM_SWEEP_H
#define HEFT_CHECKSUM_SWEEP_H
#include "core/read/progress.h"

typedef enum heft_checksum_state {
    HEFT_CHECKSUM_MATCHES,
    HEFT_CHECKSUM_MISMATCH,
    HEFT_CHECKSUM_UNCHECKED /* this build lacks the algorithm */
} heft_checksum_state;

/* Set states[i] for every checksum i of f->x.  Checksums with skip[i] != 0 stay unchecked; skip may
 * be NULL.  Bytes that several checksums cover are read once; joinable checksums are computed in
 * chunks, on all threads. */
heft_status heft_checksum_sweep(heft_checksum_state *states, const heft_file *f,
                                const uint8_t *skip, heft_progress *progress, heft_error *err);
/* Iterate over groups of adjacent alternative checksums.  Set *representative to the first match in
 * the group at *i, or to the group's first; advance *i past the group.  Return false at the end. */
bool heft_checksums_next(const heft_file *f, const heft_checksum_state *states, uint32_t *i,
                         uint32_t *representative);
/* Return the number of bytes that a sweep reads, for progress. */
uint64_t heft_checksum_sweep_bytes(const heft_file *f);

#endif
