/* encode_fits.h - searches for the scale of a group of elements that gives the least error.
 *
 * A search tries several scales, sets each to the best one for the codes that it leads to, and
 * compares weighted errors.  Sums run over the elements in order, in f32. */
#ifndef HEFT_ENCODE_FITS_H
#define HEFT_ENCODE_FITS_H
#include <stdbool.h>
#include <stdint.h>

enum { HEFT_FIT_ELEMENTS = 32 }; /* the most elements of a group */

/* A search for scale * code - minimum, with codes from 0 to `top`: one scale from the range of the
 * elements, then `steps` scales where the range has top + first + step * i codes. */
typedef struct heft_affine_fit {
    uint32_t elements;
    int32_t top;
    float first, step;
    int32_t steps;
    bool is_absolute; /* sum absolute errors rather than squares */
} heft_affine_fit;

/* Return the scale, and set *minimum, which is not negative, and the codes.  weights: of the
 * elements. */
float heft_fit_affine(const heft_affine_fit *f, const float *x, const float *weights,
                      float *minimum, uint8_t *codes);
/* Return the scale for scale * (code - half), with codes from 0 to 2 * half - 1.  weights: of the
 * elements, or NULL for their squares. */
float heft_fit_symmetric(uint32_t elements, int32_t half, const float *x, const float *weights,
                         uint8_t *codes);

#endif
