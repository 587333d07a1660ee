/* checksum_sweep.h - one pass over the bytes that the checksums of a file cover. */
#ifndef HEFT_CHECKSUM_SWEEP_H
#define HEFT_CHECKSUM_SWEEP_H
#include "core/read/progress.h"

typedef enum heft_checksum_state {
    HEFT_CHECKSUM_MATCHES,
    HEFT_CHECKSUM_MISMATCH,
    HEFT_CHECKSUM_UNCHECKED /* this build lacks the algorithm */
} heft_checksum_state;

/* states has room for one entry per claim of f->x.  Claims with a skip that is not 0 (NULL: none)
 * stay unchecked.  Bytes that several claims cover are read
 * once; checksums that can be joined are computed in pieces, on all threads. */
heft_status heft_checksum_sweep(heft_checksum_state *states, const heft_file *f,
                                const uint8_t *skip, heft_progress *progress, heft_error *err);
/* Readings of one checksum stand together: from claim *i on, sets *pick to the one that speaks for
 * them, the first that holds, and moves *i behind them.  false past the last. */
bool heft_checksums_next(const heft_file *f, const heft_checksum_state *states, uint32_t *i,
                         uint32_t *representative);
/* Bytes that a sweep reads, for the meter. */
uint64_t heft_checksum_sweep_bytes(const heft_file *f);

#endif
