/* cast_kernels.h - the casts of heft_kernels, by instruction set. */
#ifndef HEFT_CAST_KERNELS_H
#define HEFT_CAST_KERNELS_H
#include "base/kernels.h"

extern const heft_cast_kernel heft_casts_avx2[];

#endif
