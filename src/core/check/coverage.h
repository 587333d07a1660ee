/* coverage.h - how much of the payload the checksums of a file cover. */
#ifndef HEFT_COVERAGE_H
#define HEFT_COVERAGE_H
#include "core/read/file.h"

/* Set *payload to the stored bytes of all parts, and *checked to the bytes that are covered by a
 * checksum that this build computes; bytes that several parts or checksums share count once.  Bytes
 * in shards that are missing do not count as checked.  header_only: consider the checksums that are
 * compared on opening. */
heft_status heft_file_coverage(uint64_t *payload, uint64_t *checked, const heft_file *f,
                               bool header_only, heft_error *err);

#endif
