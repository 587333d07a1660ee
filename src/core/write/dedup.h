/* dedup.h - which parts that are to be written will have the same bytes. */
#ifndef HEFT_DEDUP_H
#define HEFT_DEDUP_H
#include "core/write/copy.h"

typedef struct heft_dedup {
    bool contents; /* parts that are copied byte for byte are tied when their bytes are equal */
    const uint32_t
        *equal; /* by part of the input: those with equal numbers have equal bytes; or NULL: read */
    heft_progress_fn progress; /* called with 0 bytes done: stops the search; or NULL */
    void *ctx;
} heft_dedup;

/* Sets same[part], which holds each part's own number, to the first part of the same bytes: of those that are made
 * of the same stored bytes in the same way and, with contents, those that have equal bytes.  Whole parts are read
 * only where length, beginning and end are those of another. */
heft_status heft_dedup_parts(uint32_t *same, heft_planner *p, const heft_file *in,
                             const heft_origin *origins, const heft_dedup *how, heft_error *err);

#endif
