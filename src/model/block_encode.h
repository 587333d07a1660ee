/* block_encode.h - encoding of block-quantised types, whose elements share a scale.
 *
 * The bytes are those of ggml's reference functions, which GGUF files are made with: each operation
 * is one in f32, rounded once, in the order written, so that no compiler may contract or reorder
 * them.  blocks.c describes the layouts. */
#ifndef HEFT_BLOCK_ENCODE_H
#define HEFT_BLOCK_ENCODE_H
#include "model/encode_fits.h"

/* Return true if rows can be encoded to blocks of this type. */
bool heft_block_can_encode(heft_dtype t);
/* Return why rows cannot be encoded to this type, as the end of a sentence; NULL if they can.
 * Static. */
const char *heft_block_encode_refusal(heft_dtype t);
/* Return true if the importance of columns changes how rows are encoded to this type. */
bool heft_block_uses_importance(heft_dtype t);
/* Encode a row of n elements.  heft_block_can_encode(to) must be true and n fill whole blocks; n is
 * the number of columns of the tensor, since some types weigh an element by the mean square of its
 * row.  importance: n weights of the columns, finite and not negative, or NULL.
 * NaN and infinity are not refused: their blocks have no meaning, but are the same on every
 * machine, and other blocks of the row are as they would be (with importance, of other rows). */
void heft_row_encode(uint8_t *out, heft_dtype to, const float *row, size_t n,
                     const float *importance);

/* Encode as heft_row_encode() does, by given searches; all searches give the same bytes. */
void heft_row_encode_with(const heft_fits *fits, uint8_t *out, heft_dtype to, const float *row,
                          size_t n, const float *importance);

#endif
