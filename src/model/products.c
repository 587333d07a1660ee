/* products.c - the portable form of the loops, and the choice of those for the processor. */
#include "model/products.h"

static void add_row(const heft_products *p, size_t i)
{
    const float *left = p->left + i * p->rank;
    float *out = p->out + i * p->stride;
    for (size_t j = 0; j < p->columns; j++) {
        float sum = 0;
        for (size_t k = 0; k < p->rank; k++)
            sum += left[k] * p->right[k * p->right_stride + j];
        out[j] += p->scale * sum;
    }
}

void heft_products_portable(const heft_products *p)
{
    for (size_t i = 0; i < p->rows; i++)
        add_row(p, i);
}

void heft_products_add(const heft_products *p)
{
    const heft_kernels *now = heft_kernels_now();
    (now->products ? now->products : heft_products_portable)(p);
}
