/* products_loops.c - the loops of products.c, compiled for several instruction sets: meson.build
 * renames heft_products_loops for each.
 *
 * A tile of the result stays in registers while the products are added: ROWS rows share each load
 * of the right matrix. */
#include "model/products.h"

#include <string.h>

/* meson.build states how many numbers a register has. */
enum { ROWS = 4, VECTORS = 2, LANES = heft_products_lanes, TILE = VECTORS * LANES };

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

static inline lanes load(const float *p)
{
    lanes v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void add_to(float *out, lanes sum, float scale)
{
    lanes v = load(out) + scale * sum;
    memcpy(out, &v, sizeof v);
}

static inline void add_tile(const heft_products *p, size_t i, size_t j)
{
    const float *l0 = p->left + i * p->rank, *l1 = l0 + p->rank, *l2 = l1 + p->rank,
                *l3 = l2 + p->rank, *right = p->right + j;
    lanes a0 = { 0 }, a1 = { 0 }, b0 = { 0 }, b1 = { 0 }, c0 = { 0 }, c1 = { 0 }, d0 = { 0 },
          d1 = { 0 };
    for (size_t k = 0; k < p->rank; k++, right += p->right_stride) {
        lanes x = load(right), y = load(right + LANES);
        a0 += l0[k] * x;
        a1 += l0[k] * y;
        b0 += l1[k] * x;
        b1 += l1[k] * y;
        c0 += l2[k] * x;
        c1 += l2[k] * y;
        d0 += l3[k] * x;
        d1 += l3[k] * y;
    }
    float *out = p->out + i * p->stride + j;
    add_to(out, a0, p->scale);
    add_to(out + LANES, a1, p->scale);
    add_to(out += p->stride, b0, p->scale);
    add_to(out + LANES, b1, p->scale);
    add_to(out += p->stride, c0, p->scale);
    add_to(out + LANES, c1, p->scale);
    add_to(out += p->stride, d0, p->scale);
    add_to(out + LANES, d1, p->scale);
}

static inline void add_row(const heft_products *p, size_t i, size_t from)
{
    const float *left = p->left + i * p->rank;
    float *out = p->out + i * p->stride;
    size_t j = from;
    for (; j + LANES <= p->columns; j += LANES) {
        const float *right = p->right + j;
        lanes sum = { 0 };
        for (size_t k = 0; k < p->rank; k++, right += p->right_stride)
            sum += left[k] * load(right);
        add_to(out + j, sum, p->scale);
    }
    for (; j < p->columns; j++) {
        float sum = 0;
        for (size_t k = 0; k < p->rank; k++)
            sum += left[k] * p->right[k * p->right_stride + j];
        out[j] += p->scale * sum;
    }
}

void heft_products_loops(const heft_products *p)
{
    size_t i = 0, whole = p->columns - p->columns % TILE;
    for (; i + ROWS <= p->rows; i += ROWS) {
        for (size_t j = 0; j < whole; j += TILE)
            add_tile(p, i, j);
        for (size_t r = 0; r < ROWS && whole < p->columns; r++)
            add_row(p, i + r, whole);
    }
    for (; i < p->rows; i++)
        add_row(p, i, 0);
}
