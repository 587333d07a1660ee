/* verification.h - checks of a whole file: the layout of its format, the checksums that it stores,
 * what its parts decode to, and how much of the payload checksums cover.  Each section names the
 * file that defines the functions. */
#ifndef HEFT_VERIFICATION_H
#define HEFT_VERIFICATION_H
#include <heft/check.h>
#include <heft/heft.h>

#include "core/read/ledger.h"
#include "core/read/progress.h"

/* ---- the format: file_verify.c ---- */

/* Run the format's check and call fn for each finding.  Padding is not read where skips_padding()
 * returns true. */
heft_status heft_verify_layout(const heft_file *f,
                               bool (*skips_padding)(void *ctx, heft_range where),
                               heft_finding_fn fn, void *ctx, heft_error *err);

/* ---- all checksums in one pass: checksum_sweep.c ---- */

/* Compare every checksum for which HEFT_LEDGER_SWEEP was chosen.  Bytes that several checksums
 * cover are read once; joinable checksums are computed in chunks, on all threads. */
heft_status heft_checksum_sweep(heft_ledger *l, heft_progress *progress, heft_error *err);
/* Return the number of bytes that a sweep of all checksums reads, for progress. */
uint64_t heft_checksum_sweep_bytes(const heft_file *f);

/* ---- decoded bytes: decoded_check.c ---- */

typedef struct heft_decoded_fault {
    heft_severity severity;
    const char *rule, *text;
    heft_range where;
    uint32_t tensor;
    heft_status status; /* HEFT_E_CHECKSUM, or why the part cannot be decoded */
} heft_decoded_fault;

/* Call report for each fault in the selected parts (NULL: all parts), in the order of the parts,
 * after all threads have ended.  ctx is passed to both functions.  Add the number of decoded bytes
 * to *bytes. */
heft_status heft_decoded_check(const heft_file *f, heft_progress *progress,
                               bool (*selects)(void *ctx, uint32_t part),
                               void (*report)(void *ctx, const heft_decoded_fault *c), void *ctx,
                               uint64_t *bytes, heft_error *err);
uint64_t heft_decoded_check_bytes(const heft_file *f); /* for progress */
/* Return true if a value of the part may break a rule that the format of the file has. */
bool heft_decoded_check_has_rule(const heft_file *f, uint32_t part);
/* Return HEFT_E_FORMAT or HEFT_E_CHECKSUM for the first fault in the selected parts. */
heft_status heft_decoded_check_require(const heft_file *f,
                                       bool (*selects)(void *ctx, uint32_t part), void *ctx,
                                       heft_error *err);

/* ---- how much checksums cover: coverage.c ---- */

/* Add the stored bytes of all parts to payload_bytes, and the bytes that are covered by a checksum
 * that this build computes to payload_checked; bytes that several parts or checksums share count
 * once.  Bytes in shards that are missing do not count as checked.  header_only: consider the
 * checksums that are compared on opening. */
heft_status heft_file_coverage(heft_verify_result *to, const heft_file *f, bool header_only,
                               heft_error *err);

/* ---- checks the boxes of assembled tensors, for `verify` ---- */

/* Report boxes that pass the end of a file, files inside of boxes that are not as the index states,
 * and copies of boxes that differ.  Add the bytes of those files to the payload of the result. */
heft_status heft_check_boxes(heft_check *c, const heft_file *f, heft_progress *progress,
                             heft_verify_result *result);
/* Return the bytes that heft_check_boxes() reads and adds to the progress. */
uint64_t heft_check_boxes_bytes(const heft_file *f);

#endif
