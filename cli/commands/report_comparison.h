/* report_comparison.h - what a report says about a second file: rows, and pictures of the tensors
 * that differ most. */
#ifndef HEFT_CLI_REPORT_COMPARISON_H
#define HEFT_CLI_REPORT_COMPARISON_H
#include "text/jsonout.h"
#include "values/comparison.h"
#include "values/pair_picture.h"

enum { REPORT_PICTURES = 64 };

typedef struct compared_row { /* tensors that differ; renamed ones have both, but no pair */
    uint32_t a, b;            /* HEFT_NONE: only the other file has it */
    const pair *p;
} compared_row;

typedef struct compared {
    const comparison *c;
    compared_row *rows;
    size_t count;
    pair_picture *pictures;
    uint32_t drawn[REPORT_PICTURES]; /* numbers of rows, the most different first */
    uint32_t drawn_count;
} compared;

/* List the rows of a comparison that has run, and draw pictures unless `quick`. Return an exit
 * code. compared_release() is due after an error, too. */
int compared_begin(compared *x, const comparison *c, bool quick);
void compared_release(compared *x); /* safe on a zeroed struct */
/* Write the member "comparison". */
void compared_put(json *j, const compared *x);

#endif
