/* split_units.h - the units of a split: a tensor, or several tensors with shared bytes.
 *
 * This room cuts a model into files and writes them as a set. A single file is written by
 * convert. */
#ifndef HEFT_SPLIT_UNITS_H
#define HEFT_SPLIT_UNITS_H
#include "core/write/plan/plan.h"

typedef struct heft_split_units {
    heft_index x;            /* names and types of the tensors to write */
    uint32_t tensors, count; /* number of tensors in x; number of units */
    uint32_t *source;        /* by tensor: the tensor of the input */
    uint32_t *unit;          /* by tensor: the unit */
    uint64_t *bytes;         /* by unit: bytes of data */
    /* By unit: index of the first tensor in `members`; an extra entry marks the end. */
    uint32_t *first_of;
    uint32_t *members;  /* tensors of the input, grouped by unit */
    uint32_t *equal_id; /* by part of the input: see heft_conversion_scope; or NULL */
    uint64_t total;     /* bytes of data of all units */
} heft_split_units;

/* Collect the tensors of a plan that has run.  Tensors that come from the same bytes and that
 * the target can store once form a unit, at the position of the first tensor.  u must be zeroed,
 * and freed even after an error. */
heft_status heft_split_units_collect(heft_split_units *u, const heft_file *in, heft_planner *p,
                                     heft_error *err);
void heft_split_units_free(heft_split_units *u); /* a zeroed struct is harmless */

#endif
