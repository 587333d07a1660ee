/* no_quantise_loops.c - in place of the loops of encoders and decoders in src/simd, which tables of
 * instruction sets name, in a build without the module 'quantise'.  Nothing calls them. */
#include "simd/encode_sets.h"
#include "simd/packed_sets.h"

const heft_fits heft_fits_baseline = { .affine = NULL };
const heft_fits heft_fits_avx2 = { .affine = NULL };
const heft_fits heft_fits_avx512 = { .affine = NULL };
const heft_packed_loops heft_packed_set = { .halves = NULL };
const heft_packed_loops heft_packed_set_avx2 = { .halves = NULL };
const heft_packed_loops heft_packed_set_avx512 = { .halves = NULL };
const heft_packed_loops heft_packed_set_vbmi = { .halves = NULL };
