/* block_grids.h - the code books of ggml's block types iq1 to iq3 (block_grids.c).
 *
 * An entry has eight codes of 2 bits, or four codes of 3 bits, the first in the lowest bits. */
#ifndef HEFT_BLOCK_GRIDS_H
#define HEFT_BLOCK_GRIDS_H
#include <stdint.h>

enum {
    HEFT_GRID_IQ2_XXS = 256,
    HEFT_GRID_IQ2_XS = 512,
    HEFT_GRID_IQ2_S = 1024,
    HEFT_GRID_IQ3_XXS = 256,
    HEFT_GRID_IQ3_S = 512,
    HEFT_GRID_IQ1 = 2048
}; /* entries */

extern const uint8_t heft_grid_iq2_xxs[2 * HEFT_GRID_IQ2_XXS];
extern const uint8_t heft_grid_iq2_xs[2 * HEFT_GRID_IQ2_XS];
extern const uint8_t heft_grid_iq2_s[2 * HEFT_GRID_IQ2_S];
extern const uint8_t heft_grid_iq3_xxs[2 * HEFT_GRID_IQ3_XXS];
extern const uint8_t heft_grid_iq3_s[2 * HEFT_GRID_IQ3_S];
extern const uint8_t heft_grid_iq1[2 * HEFT_GRID_IQ1];

/* Return entry i of a code book.  The number of entries is a power of two, so that no index leaves
 * the book. */
static inline uint32_t heft_grid_at(const uint8_t *grid, uint32_t entries, uint32_t i)
{
    i &= entries - 1;
    return grid[i] | (uint32_t)grid[entries + i] << 8;
}

/* Seven signs are stored; the eighth makes the number of minus signs even.  Return all eight, the
 * first in the lowest bit; a set bit is a minus sign. */
static inline uint32_t heft_grid_signs(uint32_t seven)
{
    uint32_t parity = seven ^ seven >> 4;
    return seven | (0x6996u >> (parity & 15) & 1) << 7;
}

#endif
