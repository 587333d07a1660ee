/* word_columns.h - decodes matrices of packed words whose columns are the rows of the result.
 *
 * A strip of columns is turned at once: its rows are dense streams of bits, and are decoded like
 * numbers that are packed along the rows. */
#ifndef HEFT_WORD_COLUMNS_H
#define HEFT_WORD_COLUMNS_H
#include "scheme/decoding.h"

enum { HEFT_BAND = 16 }; /* words of a row of the result that are turned at once */

typedef struct heft_word_columns {
    /* Write words [word, word + height) of the result's rows [first, first + rows) to band[i][k],
     * word i of row k, rows apart.  `first` and `rows` are multiples of eight, or up to the last
     * row.  lanes > 1: row k is at k % lanes * (rows / lanes) + k / lanes. */
    bool (*read_band)(heft_decoder *r, uint64_t word, size_t height, uint64_t first, size_t rows,
                      uint32_t *band);
    size_t lanes;
    /* Set zero[i] to the zero point of row first + i in a group. */
    bool (*read_zero_points)(heft_decoder *r, uint64_t group, uint64_t first, size_t rows,
                             float *zero);
} heft_word_columns;

/* A row of the result: its codes, and the zero points and scales of its groups. */
typedef struct heft_word_row {
    const uint8_t *words;
    const float *zero, *scale;
} heft_word_row;
/* Find a row, valid until the next call.  Return false after an error. */
bool heft_find_word_row(heft_decoder *r, uint64_t row, heft_word_row *out);
heft_status heft_decode_word_columns(heft_decoder *r, uint64_t row, uint64_t column, size_t count,
                                     float *out);
bool heft_look_up_word_columns(heft_decoder *r, uint64_t row, uint64_t column, size_t count,
                               heft_dtype as, uint8_t *out);

#endif
