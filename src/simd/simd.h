/* simd.h - the instruction sets with kernels. */
#ifndef HEFT_SIMD_H
#define HEFT_SIMD_H
#include "base/kernels.h"

typedef struct heft_simd_set {
    bool (*is_supported)(void); /* by the processor and the operating system */
    const heft_kernels *kernels;
} heft_simd_set;

/* The sets of the architecture, the fastest first; the last is the portable one. */
extern const heft_simd_set heft_simd_sets[];

/* These kernels are compiled for the baseline of the architecture. */
extern const heft_kernels heft_portable_kernels;

#endif
