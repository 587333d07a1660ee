/* cast_loops.h - casts, compiled for several instruction sets (cast_loops.c). */
#ifndef HEFT_CAST_LOOPS_H
#define HEFT_CAST_LOOPS_H
#include "base/kernels.h"

heft_cast_function heft_cast_loops; /* the baseline of the compiler */
heft_cast_function heft_cast_loops_sse4_1;
heft_cast_function heft_cast_loops_avx2;
heft_cast_function heft_cast_loops_avx512;
heft_cast_function heft_cast_loops_vbmi; /* AVX-512 with shuffles of bytes */

#endif
