/* blocks.h - elements of block-quantised types, which share scales within a block. */
#ifndef HEFT_BLOCKS_H
#define HEFT_BLOCKS_H
#include <heft/heft.h>

enum { HEFT_BLOCK_ELEMENTS = 256, HEFT_BLOCK_BYTES = 292 }; /* of the largest block */

/* Whether blocks of this type can be decoded here; others are opaque. */
bool heft_block_is_known(heft_dtype t);
/* All elements of one block of such a type. */
void heft_block_decode(float out[HEFT_BLOCK_ELEMENTS], heft_dtype t, const uint8_t *block);
/* Whether it is known where a block of this type has numbers of more than one byte. */
bool heft_block_can_byteswap(heft_dtype t);
/* Turns these round: between big-endian and little-endian. */
void heft_block_byteswap(uint8_t *block, heft_dtype t);

#endif
