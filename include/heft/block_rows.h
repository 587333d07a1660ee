/* block_rows.h - rows of block-quantised types, whose elements share a scale: q8_0, q4_k and others
 * of GGUF.  The general rules of heft.h apply.
 *
 * Rows are encoded to the bytes that ggml's reference functions write, which llama-quantize calls:
 * the same bytes on every machine.  A row has the columns of a tensor, which must fill whole blocks
 * (heft_dtype_info.block_elems), since some types weigh an element by the mean square of its row.
 *
 * Stability: provisional. */
#ifndef HEFT_BLOCK_ROWS_H
#define HEFT_BLOCK_ROWS_H
#include <heft/heft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- rows of blocks ----------------------------------------------------------------------- */

/* Return whether heft_block_encode() encodes to a type.  iq1, iq2 and iq3 are not encoded: their
 * codes are searched in a book, with importance, which llama-quantize does. */
HEFT_API bool heft_block_can_encode(heft_dtype t);
/* Return whether importance changes the bytes of a type; other types ignore it. */
HEFT_API bool heft_block_uses_importance(heft_dtype t);
/* Encode a row of `columns` numbers.  `capacity` bytes at `out` may be written; the blocks take
 * columns / block_elems * block_bytes of them.  importance: how much the error of each column
 * counts, `columns` numbers that are finite and not negative, such as means of squared activations;
 * NULL: the numbers themselves decide.  Nothing is refused for its value: blocks with NaN, infinity
 * or numbers too large for their scale, which ends at 65504 in f16, may become NaN, infinite or 0,
 * as in ggml, the same everywhere.  heft_file_convert() refuses such numbers.
 * May be called on several threads at a time.
 *   HEFT_E_UNSUPPORTED  the type cannot be encoded; the message says why
 *   HEFT_E_ARGUMENT     the columns do not fill whole blocks, capacity is too small, or a number of
 *                       the importance is negative or not finite */
HEFT_API heft_status heft_block_encode(void *out, size_t capacity, heft_dtype to, const float *row,
                                       size_t columns, const float *importance, heft_error *err);
/* Decode a row of `columns` numbers from `bytes` bytes of blocks.  Values are those of ggml, to the
 * bit.  May be called on several threads at a time.
 *   HEFT_E_UNSUPPORTED  the type is not a type of blocks that is decoded
 *   HEFT_E_ARGUMENT     the columns do not fill whole blocks, or there are too few bytes */
HEFT_API heft_status heft_block_decode(float *out, heft_dtype from, const void *blocks,
                                       size_t bytes, size_t columns, heft_error *err);

#ifdef __cplusplus
}
#endif

#endif
