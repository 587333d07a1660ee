/* pair_picture.h - the values of a tensor in two files beside each other: figures, a histogram over
 * one range, and maps of A, B and A - B. */
#ifndef HEFT_CLI_PAIR_PICTURE_H
#define HEFT_CLI_PAIR_PICTURE_H
#include "values/compare.h"
#include "values/summary.h"

enum { PICTURE_SIDE = 40, PICTURE_FIELDS = PICTURE_SIDE * PICTURE_SIDE, PICTURE_BINS = 64 };

/* Fields in lines, each of which stands for a rectangle of the tensor, seen as a matrix with the
 * last dimension as its columns. Complex numbers are two values each. */
typedef struct value_map {
    uint64_t rows, columns;      /* shape of the matrix */
    size_t height, width;        /* at most PICTURE_SIDE */
    double sums[PICTURE_FIELDS]; /* sums over finite values */
    uint64_t counts[PICTURE_FIELDS];
    uint8_t kinds[PICTURE_FIELDS]; /* 1: a NaN, 2: an infinite value, 3: both */
} value_map;

typedef struct pair_picture {
    summary figures[2], difference; /* without numbers: not numeric; their bins are unset */
    value_map maps[2], difference_map;
    uint64_t bins[2][PICTURE_BINS]; /* equally wide, from min to max */
    double min, max; /* range of the finite values of both; min > max: there are none */
} pair_picture;

/* Draw the tensors, one of which may be HEFT_NONE. The difference needs equal shapes, and dense
 * tensors. Return false if the work was stopped. */
bool pair_picture_draw(pair_picture *p, work *w, const side sides[2]);

#endif
