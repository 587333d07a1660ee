/* copy.h - copy the payload of an open file to the planned offsets: cast, transpose, decode or
 * compress parts, and compute checksums of source and target in the same pass. */
#ifndef HEFT_COPY_H
#define HEFT_COPY_H
#include "core/check/source_verifier.h"
#include "core/write/convert/layout_converter.h"
#include "core/write/plan/plan.h"
#include "model/number.h"

typedef struct heft_origin { /* source of a part to write, by number of that part */
    uint32_t part;           /* part of the input */
    heft_dtype dtype;        /* element type in the input */
    bool transposed;
    uint64_t rows, columns; /* shape in the input, if transposed */
    uint64_t elements;      /* elements to write */
    /* If the layout of a tensor is converted, `part` holds the dense data or the values. */
    heft_layout_target layout_target;
    uint32_t tensor;  /* tensor of the input */
    uint64_t nonzero; /* nonzero elements in the dense data of that tensor */
    /* If rows are encoded to a block type: elements of a row, rows of a matrix, and for each matrix
     * the importance of its columns, or NULL.  Else 0. */
    uint64_t row, matrix_rows;
    const float *importance;
    uint32_t quality; /* record of heft_quality, if rows are measured */
} heft_origin;

typedef struct heft_copy_context {
    heft_planner *p;
    const heft_file *in;
    const heft_origin *origins;
    heft_sink *sink;
    heft_ledger *ledger;
    heft_progress *progress;
    size_t (*lost)
        [HEFT_CAST_LOSSES]; /* by part: values that the cast loses, by kind; NULL: not counted */
    const heft_range *only; /* range of the target to write; NULL: everything */
    bool allow_nan;         /* encode NaN and infinities */
    heft_quality *quality;  /* measures encoded rows; or NULL */
} heft_copy_context;

/* Write everything between header and trailer, or in the range `only`, padding included. */
heft_status heft_copy(const heft_copy_context *c, heft_error *err);
/* Return the greatest offset up to `at` where a range `only` may end and another begin: no part
 * that has to stay whole, and no group of elements that is cast at once, lies on both sides. */
heft_status heft_copy_border(const heft_copy_context *c, uint64_t *at, heft_error *err);
/* Write compressed parts, each at the current end of the file. */
heft_status heft_copy_encoded(const heft_copy_context *c, heft_error *err);

#endif
