/* float_loops.h - loops over f32 values, compiled for several instruction sets (float_loops.c).
 * All give the same bits. */
#ifndef HEFT_FLOAT_LOOPS_H
#define HEFT_FLOAT_LOOPS_H
#include <heft/private.h>

/* The functions of private.h, for one instruction set. */
typedef struct heft_float_functions {
    heft_f32_summary (*summarize)(const float *v, size_t n);
    double (*squares)(const float *v, size_t n, double mean);
    void (*count)(uint64_t counts[HEFT_F32_BINS], const float *v, size_t n,
                  const heft_f32_edges *edges);
} heft_float_functions;

extern const heft_float_functions heft_float_loops; /* the baseline of the compiler */
extern const heft_float_functions heft_float_loops_avx2;
extern const heft_float_functions heft_float_loops_avx512;

#endif
