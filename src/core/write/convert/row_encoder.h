/* row_encoder.h - encode rows of a tensor to a block type while they are copied. */
#ifndef HEFT_ROW_ENCODER_H
#define HEFT_ROW_ENCODER_H
#include <heft/heft.h>

#include "core/write/convert/copy.h"
#include "model/quality.h"

enum { HEFT_ENCODED_COLUMNS = 64 << 20 }; /* the longest row, a quarter of a gigabyte in f32 */

/* Return true if rows of type `from` can be encoded to the block type `to`. */
bool heft_rows_can_encode(heft_dtype to, heft_dtype from);

/* Encode `count` rows of a part from row `first` on; src has them in the element type of the input,
 * and `values` has memory for one row.  sums: get how far the encoded numbers are from the row; or
 * NULL.  HEFT_E_LOSSY: a number is NaN or infinite, unless the conversion allows this. */
heft_status heft_rows_encode(uint8_t *dst, const heft_copy_context *c, uint32_t part,
                             const uint8_t *src, uint64_t first, uint64_t count, float *values,
                             heft_pair_sums *sums, heft_error *err);

#endif
