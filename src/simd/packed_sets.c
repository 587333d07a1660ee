/* packed_sets.c - the loops of packed_steps.h, compiled for several instruction sets: meson.build
 * renames heft_packed_set for each. */
#include "simd/packed_sets.h"

#include "model/packed_steps.h"

const heft_packed_loops heft_packed_set = HEFT_PACKED_LOOPS;
