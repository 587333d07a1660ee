/* copy.h - copy the payload of an open file to the planned offsets: cast, transpose, decode or
 * compress parts, and compute checksums of source and target in the same pass. */
#ifndef HEFT_COPY_H
#define HEFT_COPY_H
#include <heft/heft.h>

#include "core/check/source_verifier.h"
#include "core/read/stream.h"
#include "core/write/convert/layout_converter.h"
#include "core/write/plan/plan.h"
#include "model/blocks.h"
#include "model/number.h"
#include "model/quality.h"

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

/* Announce the source bytes of the first parts: a server answers several requests at the same time,
 * and meanwhile room is reserved for the target.  heft_copy() announces the others. */
void heft_copy_announce(const heft_copy_context *c);
/* Write everything between header and trailer, or in the range `only`, padding included. */
heft_status heft_copy(const heft_copy_context *c, heft_error *err);
/* Return the greatest offset up to `at` where a range `only` may end and another begin: no part
 * that has to stay whole, and no group of elements that is cast at once, lies on both sides. */
heft_status heft_copy_border(const heft_copy_context *c, uint64_t *at, heft_error *err);
/* Write compressed parts, each at the current end of the file. */
heft_status heft_copy_encoded(const heft_copy_context *c, heft_error *err);

/* ---- find parts to write that will have the same bytes ---- */

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

/* ---- produce the bytes of a part to write ---- */

enum {
    HEFT_MAX_ELEMENT_BYTES = 16,                  /* bytes of the largest element type */
    HEFT_MAX_UNIT_BYTES = 8 * HEFT_BLOCK_ELEMENTS /* largest block, cast to 8-byte elements */
};

/* A worker's position in the part that the worker currently reads. */
typedef struct heft_part_source {
    const heft_copy_context *c;
    uint8_t *scratch; /* in each half: elements before a cast, and rows to transpose */
    size_t half;      /* bytes of a half */
    uint32_t part;    /* current part, or HEFT_NONE */
    bool in_order;    /* the part is read from first byte to last */
    heft_stream stream;
    heft_layout_converter *converter; /* converts the layout, instead of the stream; or NULL */
    heft_running_digest target_digest;
    heft_spill transpose_spill; /* the whole decoded part, if a compressed part is transposed */
    uint64_t unit_first;        /* number of the unit in `unit`, or HEFT_NOWHERE */
    uint64_t lost[HEFT_CAST_LOSSES]; /* values of the part lost by casts so far */
    heft_pair_sums sums;             /* rows of the part that are not collected yet */
    uint8_t *unit;                   /* `block`, or memory for an encoded row */
    float *values;  /* a row before it is encoded; NULL: no such part has been open */
    size_t columns; /* capacity of `values`, and of `unit` in elements */
    _Alignas(HEFT_MAX_ELEMENT_BYTES) uint8_t block[HEFT_MAX_UNIT_BYTES];
    heft_error err;
} heft_part_source;

/* Return true if a single worker has to produce the whole part in order. */
bool heft_part_is_whole(const heft_copy_context *c, uint32_t part);

/* Return the number of bytes to write that are produced together: elements of blocks that a cast
 * converts at once. */
uint32_t heft_part_unit_bytes(const heft_copy_context *c, uint32_t part);

bool heft_part_source_init(heft_part_source *w, const heft_copy_context *c);
void heft_part_source_free(heft_part_source *w);
/* Read the next bytes [from, from + len) of a part.  A part that is whole must be read from 0 to
 * the end, without other parts in between. */
heft_status heft_part_source_read(heft_part_source *w, uint32_t part, uint64_t from, size_t len,
                                  uint8_t *dst);

/* ---- encode rows of a tensor to a block type while they are copied ---- */

enum { HEFT_ENCODED_COLUMNS = 64 << 20 }; /* the longest row, a quarter of a gigabyte in f32 */

/* The end of a message about a cast to blocks that is not possible: empty if there are encoders. */
extern const char heft_no_encoders[];
/* Return true if rows of type `from` can be encoded to the block type `to`. */
bool heft_rows_can_encode(heft_dtype to, heft_dtype from);

/* Encode `count` rows of a part from row `first` on; src has them in the element type of the input,
 * and `values` has memory for one row.  sums: get how far the encoded numbers are from the row; or
 * NULL.  HEFT_E_LOSSY: a number is NaN or infinite, unless the conversion allows this. */
heft_status heft_rows_encode(uint8_t *dst, const heft_copy_context *c, uint32_t part,
                             const uint8_t *src, uint64_t first, uint64_t count, float *values,
                             heft_pair_sums *sums, heft_error *err);

/* ---- count the values that casts lose ---- */

/* Make the copy count lost values if some cast can lose any; otherwise c->lost stays NULL. */
heft_status heft_cast_losses_begin(heft_copy_context *c, heft_error *err);
/* Count lost values by reading everything that will be cast, without a copy.  Adds no bytes to
 * the progress of c, but the progress callback can stop the pass. */
heft_status heft_cast_losses_count(heft_copy_context *c, heft_error *err);
/* Report a loss of rule "heft/cast" for each tensor that loses values.  HEFT_E_LOSSY: the losses
 * stop the conversion. */
heft_status heft_cast_losses_report(const heft_copy_context *c, heft_error *err);

#endif
