/* block_loops.h - decoding of block types for several instruction sets (block_loops.c). */
#ifndef HEFT_BLOCK_LOOPS_H
#define HEFT_BLOCK_LOOPS_H
#include "base/kernels.h"

heft_decode_function heft_block_loops; /* the baseline of the compiler */
heft_decode_function heft_block_loops_avx2;
heft_decode_function heft_block_loops_avx512;

#endif
