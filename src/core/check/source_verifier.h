/* source_verifier.h - chooses how the checksums that a file stores are compared while the file is
 * copied.  CRCs are computed from the bytes that the copy reads; bytes that a checksum covers
 * outside of the copied parts are read in addition, and a digest that cannot be joined from pieces
 * is compared by the stream of the part, or before the copy. */
#ifndef HEFT_SOURCE_VERIFIER_H
#define HEFT_SOURCE_VERIFIER_H
#include "core/read/ledger.h"

/* How a conversion uses a part of the source. */
typedef enum heft_part_use {
    HEFT_PART_UNUSED, /* the checksum of the part is not compared */
    HEFT_PART_COPIED, /* every byte is read once, so that the checksum is compared on the way */
    HEFT_PART_CHECKED_BEFORE /* bytes are read out of order: compared before the first write */
} heft_part_use;
typedef heft_part_use (*heft_part_use_fn)(void *ctx, uint32_t part);

/* Open a ledger, and choose how each checksum is compared: HEFT_LEDGER_SWEEP is before the copy.
 * part_use() is called for parts.  is_disabled: nothing is compared.  heft_ledger_free() must
 * follow, even after an error; that also applies below. */
heft_status heft_source_verifier_choose(heft_ledger *l, const heft_file *f, bool is_disabled,
                                        heft_part_use_fn part_use, void *ctx, heft_error *err);
/* Choose, and verify the checksums that the copy will not cover; HEFT_E_CHECKSUM before anything is
 * written. */
heft_status heft_source_verifier_begin(heft_ledger *l, const heft_file *f, bool is_disabled,
                                       heft_part_use_fn part_use, void *ctx, heft_error *err);
/* Begin like heft_source_verifier_begin(), for one share of a copy.  Of the checksums that have to
 * be compared before the copy, this share compares the checksums of the parts for which is_own()
 * returns true, and of bytes outside of parts if is_own(ctx, HEFT_NONE) returns true; the other
 * shares compare the rest. */
heft_status heft_source_verifier_begin_share(heft_ledger *l, const heft_file *f, bool is_disabled,
                                             heft_part_use_fn part_use,
                                             bool (*is_own)(void *ctx, uint32_t part), void *ctx,
                                             heft_error *err);
/* After the copy: verify the checksums over bytes that were shown. */
heft_status heft_source_verifier_end(heft_ledger *l, heft_error *err);
/* Compare every checksum over stored bytes now; leaves nothing for later. */
heft_status heft_source_verifier_check_now(heft_ledger *l, heft_error *err);
/* Verify all checksums and decoded parts without copying: HEFT_E_CHECKSUM or HEFT_E_FORMAT at the
 * first fault. */
heft_status heft_check_all(const heft_file *f, heft_error *err);
/* Verify, without copying, the checksums that heft_source_verifier_begin() and
 * heft_source_verifier_end() verify with the same uses of the parts, except digests of decoded
 * bytes. */
heft_status heft_check_used(const heft_file *f, heft_part_use_fn part_use, void *ctx,
                            heft_error *err);

#endif
