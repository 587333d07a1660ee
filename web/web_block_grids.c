/* web_block_grids.c - the code books of src/model/block_grids.h, made when a model is opened: the
 * sets of rows compress to half the size of the tables. */
#include <block_bits.h>

#include "heft_web.h"

uint8_t heft_grid_iq2_xxs[2 * IQ2_XXS_ENTRIES], heft_grid_iq2_xs[2 * IQ2_XS_ENTRIES];
uint8_t heft_grid_iq2_s[2 * IQ2_S_ENTRIES], heft_grid_iq1[2 * IQ1_ENTRIES];
uint8_t heft_grid_iq3_xxs[2 * IQ3_XXS_ENTRIES], heft_grid_iq3_s[2 * IQ3_S_ENTRIES];

static const struct {
    uint8_t *grid;
    const uint8_t *bits; /* a bit for each row that the book may have: gen_block_grids.py */
    uint16_t entries;
    uint8_t base, digits;
} books[] = {
    { heft_grid_iq2_xxs, iq2_xxs_bits, IQ2_XXS_ENTRIES, 3, 8 },
    { heft_grid_iq2_xs, iq2_xs_bits, IQ2_XS_ENTRIES, 3, 8 },
    { heft_grid_iq2_s, iq2_s_bits, IQ2_S_ENTRIES, 3, 8 },
    { heft_grid_iq3_xxs, iq3_xxs_bits, IQ3_XXS_ENTRIES, 8, 4 },
    { heft_grid_iq3_s, iq3_s_bits, IQ3_S_ENTRIES, 8, 4 },
    { heft_grid_iq1, iq1_bits, IQ1_ENTRIES, 3, 8 },
};

/* Return a row with the digits as codes of 2 bits (base 3) or 3 bits (base 8). */
static uint32_t codes_of(uint32_t row, uint32_t base, uint32_t digits)
{
    uint32_t codes = 0, width = base == 3 ? 2 : 3;
    for (uint32_t i = 0; i < digits; i++, row /= base)
        codes |= row % base << width * i;
    return codes;
}

void web_block_grids(void)
{
    for (uint32_t k = 0; k < sizeof books / sizeof *books; k++)
        for (uint32_t row = 0, i = 0; i < books[k].entries; row++) {
            uint32_t codes = codes_of(row, books[k].base, books[k].digits);
            if (!(books[k].bits[row / 8] >> row % 8 & 1))
                continue;
            books[k].grid[i] = (uint8_t)codes;
            books[k].grid[books[k].entries + i++] = (uint8_t)(codes >> 8);
        }
}
