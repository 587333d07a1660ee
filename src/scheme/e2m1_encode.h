/* e2m1_encode.h - numbers of E2M1 and the bytes of their scales, from any source and in any of the
 * layouts that mxfp4 and nvfp4 have. */
#ifndef HEFT_E2M1_ENCODE_H
#define HEFT_E2M1_ENCODE_H
#include "scheme/quantise_methods.h"

/* The member `read` of encoders of E2M1. */
heft_status heft_read_e2m1(heft_encoder *r, uint32_t k, uint64_t from, uint8_t *buf, size_t len);
/* Return whether codes and scales can be copied from the source without a change of the numbers:
 * pairs of codes with a scale of the type for each group of e->choice, or blocks of GGUF.  Scales
 * of columns and factors of matrices are in no layout of the target. */
bool heft_has_e2m1(const heft_encoded *e, const heft_scheme *scheme, heft_dtype block,
                   heft_dtype scale);

#endif
