/* square_root.h - the square root, correctly rounded, without a C library. */
#ifndef HEFT_SQUARE_ROOT_H
#define HEFT_SQUARE_ROOT_H

/* Return the f32 nearest to the square root, as IEEE 754 requires; NaN for numbers below 0. */
float heft_square_root(float v);

#endif
