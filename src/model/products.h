/* products.h - adds the product of two small matrices to a part of a large one.
 *
 * The order of all sums is stated, so that every machine and every program that follows it computes
 * the same bits: for each element the products left[i][k] * right[k][j] are added one after the
 * other, from k = 0 on, to a sum that begins at 0.  Each product and each sum is rounded to f32;
 * nothing is fused.  The sum is multiplied by the scale, and added to the element. */
#ifndef HEFT_PRODUCTS_H
#define HEFT_PRODUCTS_H
#include "base/kernels.h"

typedef struct heft_products {
    float *out; /* element (i, j) is out[i * stride + j] */
    size_t stride, rows, columns;
    const float *left; /* rows x rank, without gaps */
    size_t rank;
    const float *right; /* rank x columns; row k begins at right + k * right_stride */
    size_t right_stride;
    float scale;
} heft_products;

/* Add the product, by the loops for the processor. */
void heft_products_add(const heft_products *p);
/* The specification of the loops. */
void heft_products_portable(const heft_products *p);

/* The loops for instruction sets, src/simd/products_loops.c. */
typedef void heft_products_function(const heft_products *p);
extern heft_products_function heft_products_loops; /* the baseline of the compiler */
extern heft_products_function heft_products_loops_avx2, heft_products_loops_avx512;

#endif
