/* decoded_check.h - what can only be said of parts once they are decoded and looked at: that they
 * decode at all, their digests, and that truth values are 0 or 1. */
#ifndef HEFT_DECODED_CHECK_H
#define HEFT_DECODED_CHECK_H
#include "core/read/progress.h"

typedef struct heft_decoded_fault {
    heft_severity severity;
    const char *rule, *text;
    heft_range where;
    uint32_t tensor;
    heft_status status; /* of a part that cannot be decoded, or HEFT_E_CHECKSUM */
} heft_decoded_fault;

/* Calls found, in the order of the parts, after all threads are done.  *bytes grows by what was
 * looked at. */
heft_status heft_decoded_check(const heft_file *f, heft_progress *progress,
                               void (*found)(void *ctx, const heft_decoded_fault *c), void *ctx,
                               uint64_t *bytes, heft_error *err);
uint64_t heft_decoded_check_bytes(const heft_file *f); /* for the meter */
/* HEFT_E_FORMAT or HEFT_E_CHECKSUM at the first part that is not what it says. */
heft_status heft_decoded_check_require(const heft_file *f, heft_error *err);

#endif
