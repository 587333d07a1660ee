/* float_loops.h - the loops of float_stats.h for each instruction set. All give the same bits. */
#ifndef HEFT_CLI_FLOAT_LOOPS_H
#define HEFT_CLI_FLOAT_LOOPS_H
#include "float_stats.h"

typedef struct float_loops {
    float_block (*block_of)(const float *v, size_t n);
    double (*squares)(const float *v, size_t n, double mean);
    void (*count_bins)(uint64_t counts[SUMMARY_BINS], const float *v, size_t n,
                       const float_edges *edges);
} float_loops;

extern const float_loops float_loops_baseline; /* of the compiler */
extern const float_loops float_loops_avx2;
extern const float_loops float_loops_avx512;

#endif
