/* packed_sets.h - the loops of packed_steps.h for several instruction sets. */
#ifndef HEFT_PACKED_SETS_H
#define HEFT_PACKED_SETS_H
#include "model/packed_loops.h"

extern const heft_packed_loops heft_packed_set; /* the baseline of the compiler */
extern const heft_packed_loops heft_packed_set_avx2, heft_packed_set_avx512, heft_packed_set_vbmi;

#endif
