/* encode_sets.h - searches of encoders for several instruction sets. */
#ifndef HEFT_ENCODE_SETS_H
#define HEFT_ENCODE_SETS_H
#include "model/encode_fits.h"

extern const heft_fits heft_fits_baseline, heft_fits_avx2, heft_fits_avx512;

#endif
