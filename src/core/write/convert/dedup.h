/* dedup.h - find parts to write that will have the same bytes. */
#ifndef HEFT_DEDUP_H
#define HEFT_DEDUP_H
#include "core/write/convert/copy.h"

typedef struct heft_dedup {
    bool contents; /* also compare the bytes of parts that are copied unchanged */
    /* By part of the input: parts with equal numbers have equal bytes.  NULL: read and compare. */
    const uint32_t *equal_id;
    heft_progress_fn progress; /* called with 0 bytes done, can stop the search; or NULL */
    void *ctx;
} heft_dedup;

/* Set duplicate_of[part], which holds the part's own number on entry, to the first part with the
 * same bytes: parts that are made from the same stored bytes in the same way and, with contents,
 * parts with equal bytes.  Whole parts are read only if another part has the same length and the
 * same first and last bytes. */
heft_status heft_dedup_parts(uint32_t *duplicate_of, heft_planner *p, const heft_file *in,
                             const heft_origin *origins, const heft_dedup *opt, heft_error *err);

#endif
