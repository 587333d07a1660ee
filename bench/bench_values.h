/* bench_values.h - numbers for the benchmarks of casts. */
#ifndef HEFT_BENCH_VALUES_H
#define HEFT_BENCH_VALUES_H
#include <heft/heft.h>

size_t bytes_of_elements(heft_dtype t, size_t count);
/* Fill with numbers similar to weights: small, positive and negative. */
void fill_weights(uint8_t *src, heft_dtype t, size_t count);

#endif
