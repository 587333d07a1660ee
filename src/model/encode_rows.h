/* encode_rows.h - encoders of rows, by type; block_encode.c has the table. */
#ifndef HEFT_ENCODE_ROWS_H
#define HEFT_ENCODE_ROWS_H
#include <stddef.h>
#include <stdint.h>

/* Encode n elements, which fill whole blocks; importance: n weights, or NULL. */
typedef void heft_row_encoder(uint8_t *out, const float *row, size_t n, const float *importance);

/* encode_blocks32.c; q8_0 does not use the importance. */
heft_row_encoder heft_encode_q4_0, heft_encode_q4_1, heft_encode_q5_0, heft_encode_q5_1;
heft_row_encoder heft_encode_q8_0;

#endif
