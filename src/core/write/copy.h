/* copy.h - payload from an open file to its planned places, cast, transposed, decoded or
 * compressed on the way; checksums of both sides in the same pass. */
#ifndef HEFT_COPY_H
#define HEFT_COPY_H
#include "core/check/source_verifier.h"
#include "core/write/layout_converter.h"
#include "core/write/plan.h"
#include "model/number.h"

typedef struct heft_origin { /* of a part that is to be written, by its number */
    uint32_t part;           /* in the file it comes from */
    heft_dtype dtype;        /* there */
    bool transposed;
    uint64_t rows, columns;    /* there, when transposed */
    uint64_t elements;         /* of what is to be written */
    heft_layout_target making; /* of another layout: part is that of the data or values … */
    uint32_t tensor;           /* … of this tensor, … */
    uint64_t filled;           /* … whose dense data have so many elements that are not zero */
} heft_origin;

typedef struct heft_copying {
    heft_planner *p;
    const heft_file *in;
    const heft_origin *origins;
    heft_sink *sink;
    heft_source_verifier *watch;
    heft_progress *meter;
    size_t (*lost)[HEFT_CAST_LOSSES]; /* by part: values that its cast loses; NULL: not counted */
} heft_copying;

/* Everything between front and back, padding included. */
heft_status heft_copy(const heft_copying *c, heft_error *err);
/* The same when parts are appended as they come, compressed. */
heft_status heft_copy_encoded(const heft_copying *c, heft_error *err);

#endif
