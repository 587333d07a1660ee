/* lora_matrix.h - reads a part of a matrix of an adapter, whichever way it is stored. */
#ifndef HEFT_LORA_MATRIX_H
#define HEFT_LORA_MATRIX_H
#include "lora/merging.h"

typedef struct heft_lora_box {
    uint64_t matrix, row, column; /* the first element */
    size_t rows, columns;
} heft_lora_box;

typedef struct heft_lora_span { /* memory for elements that are picked from */
    float x[HEFT_COMBINE_STRIP];
} heft_lora_span;

/* Read the elements of a box to out, row by row without gaps. */
heft_status heft_lora_matrix_read(heft_combine_reader *r, heft_lora_span *span,
                                  const heft_lora_view *v, const heft_lora_box *b, float *out,
                                  heft_error *err);

#endif
