/* grid_blocks.h - decoding of block types whose codes are entries of a code book (grid_blocks.c).
 */
#ifndef HEFT_GRID_BLOCKS_H
#define HEFT_GRID_BLOCKS_H
#include <stdint.h>

/* Decode the 256 elements of a block. */
void heft_decode_iq2_xxs(float *out, const uint8_t *block);
void heft_decode_iq2_xs(float *out, const uint8_t *block);
void heft_decode_iq2_s(float *out, const uint8_t *block);
void heft_decode_iq3_xxs(float *out, const uint8_t *block);
void heft_decode_iq3_s(float *out, const uint8_t *block);
void heft_decode_iq1_s(float *out, const uint8_t *block);
void heft_decode_iq1_m(float *out, const uint8_t *block);

#endif
