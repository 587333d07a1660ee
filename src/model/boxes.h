/* boxes.h - assembled tensors: tensors whose elements lie in boxes, in several ranges of files.
 *
 * A box is a range of each dimension.  Its elements are stored one after the other in row-major
 * order, without gaps.  The boxes of a tensor are disjoint, and together they are the tensor.  A
 * flat tensor has boxes of one dimension: ranges of its elements in row-major order. */
#ifndef HEFT_BOXES_H
#define HEFT_BOXES_H
#include "model/index.h"

/* Bits of heft_ix_box.holds.  REPLICA: the elements are those of other boxes once more, and readers
 * compare them.  ZSTD: the file in the range is compressed as a whole. */
enum { HEFT_BOX_REPLICA = 0x80, HEFT_BOX_ZSTD = 0x40 };

static inline bool heft_box_is_replica(const heft_ix_box *box)
{
    return box->holds & HEFT_BOX_REPLICA;
}
static inline bool heft_box_is_zstd(const heft_ix_box *box)
{
    return box->holds & HEFT_BOX_ZSTD;
}
static inline uint32_t heft_box_holds(const heft_ix_box *box)
{
    return box->holds & ~(uint32_t)(HEFT_BOX_REPLICA | HEFT_BOX_ZSTD);
}

/* ---- for parsers ---- */

/* Begin the boxes of the tensor added last, which has its shape and no part.  Element types that
 * are blocks of several elements cannot be assembled. */
heft_status heft_ix_assembled_begin(heft_index *x, uint32_t tensor, bool is_flat);
/* Append a box of the tensor begun last; `at` is the offset of the record.  offsets and sizes have
 * a number for each dimension; of a flat tensor, one number each, in elements. */
heft_status heft_ix_box_add(heft_index *x, uint64_t at, heft_ix_box box, const uint64_t *offsets,
                            const uint64_t *sizes);
/* Record that a tensor is a piece, see heft_ix_piece; in ascending order of tensors.  offsets and
 * whole have a number for each dimension.  offsets NULL: all are 0; whole NULL: the shape of the
 * tensor of the model is not stated. */
heft_status heft_ix_piece_add(heft_index *x, uint32_t tensor, const uint64_t *offsets,
                              const uint64_t *whole, bool may_repeat);
/* Record that all other tensors are whole, and may be in several files. */
heft_status heft_ix_pieces_fill(heft_index *x);
/* End the tensor begun last and add its part "data".  Return HEFT_E_FORMAT if an element is in no
 * box or in two boxes; the message names the first such element. */
heft_status heft_ix_assembled_end(heft_index *x, uint64_t at);
/* Copy the boxes of a tensor of another index to the tensor added last, which has no part; the file
 * that `from` describes has the number `base` in x. */
heft_status heft_ix_assembled_copy(heft_index *x, const heft_index *from, uint32_t tensor,
                                   uint32_t base);
/* Return the row of the tensor in heft_index.assembled, or HEFT_NONE. */
uint32_t heft_ix_assembled_find(const heft_index *x, uint32_t tensor);

/* ---- the boxes of one tensor ---- */

typedef struct heft_boxes {
    const uint64_t *dims;    /* shape of the tensor; flat: its elements */
    uint32_t rank, count;    /* dimensions of a box, number of boxes */
    const heft_ix_box *rows; /* the boxes */
    const uint64_t *numbers; /* `rank` offsets, then `rank` sizes, of each box */
} heft_boxes;

/* Return the boxes of row i of heft_index.assembled, valid until the columns grow. */
heft_boxes heft_ix_boxes(const heft_index *x, uint32_t i);
static inline const uint64_t *heft_box_offsets(const heft_boxes *b, uint32_t box)
{
    return b->numbers ? b->numbers + 2 * (size_t)b->rank * box : NULL;
}
static inline const uint64_t *heft_box_sizes(const heft_boxes *b, uint32_t box)
{
    return b->numbers ? heft_box_offsets(b, box) + b->rank : NULL;
}

/* The fault of boxes: the first element, in row-major order, that is not in exactly one. */
typedef struct heft_box_fault {
    enum { HEFT_BOXES_TILE, HEFT_BOXES_GAP, HEFT_BOXES_OVERLAP } kind;
    uint64_t element;
    uint32_t first, second; /* overlap: two boxes that have the element */
} heft_box_fault;

/* Find out whether the boxes, which lie in the tensor, are disjoint and complete; replicas do not
 * count.  The time grows with n log n for n boxes.  HEFT_E_NOMEM, or HEFT_E_LIMIT for boxes that
 * are cut along too many dimensions, without a message. */
heft_status heft_boxes_check(heft_box_fault *out, const heft_boxes *b, heft_memory *m);

enum { HEFT_INDICES_TEXT = 120 };
/* Write the indices of an element, "[3, 0]", with a terminator; shortened if the rank is high. */
heft_str heft_element_indices(char buf[HEFT_INDICES_TEXT], const uint64_t *dims, uint32_t rank,
                              uint64_t element);

/* The elements of a box that are consecutive in the tensor are a run.  Runs ascend in the box and
 * in the tensor. */
typedef struct heft_box_runs {
    const uint64_t *dims, *offsets, *sizes;
    uint64_t count, run; /* number of runs, elements of each run */
    uint64_t step;       /* elements of the tensor for each index of `axis` */
    uint32_t axis;       /* the last dimension of which the box has only a part */
} heft_box_runs;
heft_box_runs heft_box_runs_of(const heft_boxes *b, uint32_t box);
/* Return the number in the tensor of the first element of run i. */
uint64_t heft_box_run_at(const heft_box_runs *r, uint64_t i);

#endif
