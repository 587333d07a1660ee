/* decoded_check.h - checks that need the decoded bytes of parts: that a part decodes at all,
 * digests over decoded bytes, and that booleans are 0 or 1. */
#ifndef HEFT_DECODED_CHECK_H
#define HEFT_DECODED_CHECK_H
#include "core/read/progress.h"

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

#endif
