/* blocks.h - decoding and byte-swapping of block-quantised types, whose elements share a scale. */
#ifndef HEFT_BLOCKS_H
#define HEFT_BLOCKS_H
#include <stdint.h>

#include <heft/heft.h>

enum { HEFT_BLOCK_ELEMENTS = 256, HEFT_BLOCK_BYTES = 292 }; /* the largest block */

/* Return true if blocks of this type can be decoded; all other block types are opaque. */
bool heft_block_is_known(heft_dtype t);
/* Decode all elements of one block; heft_block_is_known(t) must be true. */
void heft_decode_block(float out[HEFT_BLOCK_ELEMENTS], heft_dtype t, const uint8_t *block);
/* Return true if the offsets of all multi-byte numbers in a block of this type are known. */
bool heft_block_can_byteswap(heft_dtype t);
/* Byte-swap the multi-byte numbers of one block; heft_block_can_byteswap(t) must be true. */
void heft_block_byteswap(uint8_t *block, heft_dtype t);

/* ---- decoding of block types whose codes are entries of a code book (grid_blocks ---- */

/* Decode the 256 elements of a block. */
void heft_decode_iq2_xxs(float *out, const uint8_t *block);
void heft_decode_iq2_xs(float *out, const uint8_t *block);
void heft_decode_iq2_s(float *out, const uint8_t *block);
void heft_decode_iq3_xxs(float *out, const uint8_t *block);
void heft_decode_iq3_s(float *out, const uint8_t *block);
void heft_decode_iq1_s(float *out, const uint8_t *block);
void heft_decode_iq1_m(float *out, const uint8_t *block);

#endif
