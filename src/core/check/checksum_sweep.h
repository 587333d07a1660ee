/* checksum_sweep.h - verifies checksums of a file in one pass over the covered bytes. */
#ifndef HEFT_CHECKSUM_SWEEP_H
#define HEFT_CHECKSUM_SWEEP_H
#include "core/read/ledger.h"

/* Compare every checksum for which HEFT_LEDGER_SWEEP was chosen.  Bytes that several checksums
 * cover are read once; joinable checksums are computed in chunks, on all threads. */
heft_status heft_checksum_sweep(heft_ledger *l, heft_progress *progress, heft_error *err);
/* Return the number of bytes that a sweep of all checksums reads, for progress. */
uint64_t heft_checksum_sweep_bytes(const heft_file *f);

#endif
