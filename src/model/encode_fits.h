/* encode_fits.h - searches for the scale of a group of elements that gives the least error.
 *
 * A search tries several scales, sets each to the best one for the codes that it leads to, and
 * compares weighted errors.  Sums run over the elements in order, in f32. */
#ifndef HEFT_ENCODE_FITS_H
#define HEFT_ENCODE_FITS_H
#include <heft/heft.h>

enum { HEFT_FIT_ELEMENTS = 32 /* the most in a group */, HEFT_FIT_BATCH = 512 };

/* A search for scale * code - minimum, with codes from 0 to `top`: one scale from the range of the
 * elements, then `steps` scales where the range has top + first + step * i codes. */
typedef struct heft_affine_fit {
    uint32_t elements;
    int32_t top;
    float first, step;
    int32_t steps;
    bool is_absolute; /* sum absolute errors rather than squares */
} heft_affine_fit;

/* Searches over groups, one after the other: codes of group g begin at g * elements, like its
 * elements and weights.  A group has 16 or 32 elements. */
typedef struct heft_fits {
    /* Set the scales, the minima, which are not negative, and the codes. */
    void (*affine)(const heft_affine_fit *f, size_t groups, const float *x, const float *weights,
                   float *scales, float *minima, uint8_t *codes);
    /* Set the scales and the codes for scale * (code - half), with codes from 0 to 2 * half - 1.
     * weights: NULL for the squares of the elements. */
    void (*symmetric)(uint32_t elements, int32_t half, size_t groups, const float *x,
                      const float *weights, float *scales, uint8_t *codes);
    /* Search as `symmetric` does for 16 elements and half = 4, with squares as weights; codes are
     * changed one by one as long as that helps. */
    void (*refined)(size_t groups, const float *x, float *scales, uint8_t *codes);
    /* Set the scales of 32 elements for scale * iq4_numbers[code]. */
    void (*numbers)(size_t groups, const float *x, const float *weights, float *scales);
    /* Set n weights to importance * sqrt(variance + x * x). */
    void (*weigh)(float *weights, const float *x, const float *importance, size_t n,
                  float variance);
    /* Set n codes to those nearest to (x + minimum) / scale, from `least` to `top`, minus `least`.
     */
    void (*codes)(uint8_t *codes, const float *x, size_t n, float minimum, float scale,
                  int32_t least, int32_t top);
    /* Encode elements without importance from the range of each block; return how many, in whole
     * blocks: 0 if there is no loop for the type. */
    size_t (*blocks)(uint8_t *out, heft_dtype to, const float *x, size_t n);
} heft_fits;

extern const heft_fits heft_portable_fits;

/* Return the searches for the processor.  Static. */
const heft_fits *heft_fits_now(void);

/* Return the scale for scale * code with codes from 0 to `top`, of n numbers that are not negative:
 * the scales or minima of groups. */
float heft_fit_positive(uint32_t n, int32_t top, const float *x, const float *weights,
                        uint8_t *codes);
/* Return the index of the entry of iq4_numbers that is nearest to v. */
uint32_t heft_nearest_number(float v);
/* Return the sum of the squares of n elements, added in order. */
float heft_sum_of_squares(const float *x, size_t n);

/* ---- encoders of rows, by type ---- */

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
