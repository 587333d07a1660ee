/* encode_rows.h - encoders of rows, by type; block_encode.c has the table. */
#ifndef HEFT_ENCODE_ROWS_H
#define HEFT_ENCODE_ROWS_H
#include "model/encode_fits.h"

/* Encode n elements, which fill whole blocks; importance: n weights, or NULL. */
typedef void heft_row_encoder(uint8_t *out, const float *row, size_t n, const float *importance,
                              const heft_fits *fits);

/* encode_blocks32.c */
heft_row_encoder heft_encode_q4_0, heft_encode_q4_1, heft_encode_q5_0, heft_encode_q5_1;
heft_row_encoder heft_encode_q8_0;

/* encode_k.c */
heft_row_encoder heft_encode_q2_k, heft_encode_q4_k, heft_encode_q5_k;

/* encode_signed_k.c */
heft_row_encoder heft_encode_q3_k, heft_encode_q6_k, heft_encode_q8_k;

/* encode_tables.c */
heft_row_encoder heft_encode_iq4_nl, heft_encode_iq4_xs, heft_encode_mxfp4, heft_encode_nvfp4;

/* encode_ternary.c */
heft_row_encoder heft_encode_q1_0, heft_encode_q2_0, heft_encode_tq1_0, heft_encode_tq2_0;

#endif
