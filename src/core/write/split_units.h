/* split_units.h - what a model is split into: tensors, or several of them that share their bytes. */
#ifndef HEFT_SPLIT_UNITS_H
#define HEFT_SPLIT_UNITS_H
#include "core/write/plan.h"

typedef struct heft_split_units {
    heft_index x;            /* the tensors that will be written, by name */
    uint32_t tensors, count; /* tensors of x; units */
    uint32_t *source;        /* by tensor: the tensor of the input */
    uint32_t *unit;          /* by tensor */
    uint64_t *bytes;         /* by unit: of data */
    uint32_t
        *first_of;     /* by unit and once more: where the tensors of the unit begin in `members` */
    uint32_t *members; /* tensors of the input, by unit */
    uint32_t *equal;   /* by part of the input: see heft_converting; or NULL */
    uint64_t total;    /* bytes of data */
} heft_split_units;

/* Collect the tensors of a plan that has run.  Tensors that come from the same bytes and that the target can keep in
 * one place are one unit, at the place of the first of them.  u is zeros before, and to be freed. */
heft_status heft_split_units_collect(heft_split_units *u, const heft_file *in, heft_planner *p,
                                     heft_error *err);
void heft_split_units_free(heft_split_units *u); /* one of zeros is harmless */

#endif
