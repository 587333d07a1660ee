/* grid_blocks.c - decoding of ggml's block types iq1, iq2 and iq3.
 *
 * A block has 256 elements in 32 groups of eight, and four groups are a sub-block.  A group stores
 * the index of an entry of a code book (iq3: of two entries), which has the magnitudes, and signs
 * (iq1: an entry has signed numbers, and a small number is added to all of them).  The scale of the
 * block is an f16, multiplied by a small number for each sub-block or for half of it.  All products
 * are exact in f32.  Numbers are little-endian; bits are numbered from the lowest. */
#include "model/blocks.h"

#include "base/compiler.h"
#include "model/block_grids.h"
#include "model/float.h"

enum { GROUPS = 32, GROUP = 8, SUB_BLOCK = 4 }; /* groups, elements, groups */

/* A code book, and the numbers that its codes stand for. */
typedef struct book {
    const uint8_t *grid;
    uint16_t entries;
    uint8_t codes, bits; /* codes of an entry, bits of a code */
    int8_t numbers[8];
} book;

#define EIGHT_CODES 8, 2
#define FOUR_CODES  4, 3
static const book iq2_xxs = { heft_grid_iq2_xxs, HEFT_GRID_IQ2_XXS, EIGHT_CODES, { 8, 25, 43 } };
static const book iq2_xs = { heft_grid_iq2_xs, HEFT_GRID_IQ2_XS, EIGHT_CODES, { 8, 25, 43 } };
static const book iq2_s = { heft_grid_iq2_s, HEFT_GRID_IQ2_S, EIGHT_CODES, { 8, 25, 43 } };
static const book iq3_xxs = {
    heft_grid_iq3_xxs, HEFT_GRID_IQ3_XXS, FOUR_CODES, { 4, 12, 20, 28, 36, 44, 52, 62 }
};
static const book iq3_s = {
    heft_grid_iq3_s, HEFT_GRID_IQ3_S, FOUR_CODES, { 1, 3, 5, 7, 9, 11, 13, 15 }
};
static const book iq1 = { heft_grid_iq1, HEFT_GRID_IQ1, EIGHT_CODES, { -1, 0, 1 } };

static uint32_t u16_at(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static int32_t number_at(const book *k, uint32_t entry, uint32_t i)
{
    uint32_t codes = heft_grid_at(k->grid, k->entries, entry);
    return k->numbers[codes >> k->bits * i & ((1u << k->bits) - 1)];
}

/* Decode an entry of magnitudes; a set bit of `signs` is a minus sign. */
static void put_entry(float *out, const book *k, uint32_t entry, float scale, uint32_t signs)
{
    for (uint32_t i = 0; i < k->codes; i++) {
        float value = scale * (float)number_at(k, entry, i);
        out[i] = signs >> i & 1 ? value * -1 : value;
    }
}

/* Layout: scale; for each sub-block four indices of 8 bits, and a word with the signs of four
 * groups, 7 bits each, and the scale in the upper 4 bits. */
void heft_decode_iq2_xxs(float *out, const uint8_t *b)
{
    enum { SUB_BLOCKS = 2, SIZE = 8, WORD = 4 };
    for (uint32_t g = 0; g < GROUPS; g++) {
        const uint8_t *p = b + SUB_BLOCKS + g / SUB_BLOCK * SIZE;
        uint32_t word = heft_le32(p + WORD), l = g % SUB_BLOCK;
        float scale = heft_get_half(b) * (0.5f + (float)(word >> 28)) * 0.25f;
        put_entry(out + GROUP * g, &iq2_xxs, p[l], scale, heft_grid_signs(word >> 7 * l & 127));
    }
}

/* Return the scale of a group: 4 bits for each two groups. */
static float iq2_scale(const uint8_t *b, const uint8_t *scales, uint32_t g)
{
    uint32_t code = scales[g / 4] >> g % 4 / 2 * 4 & 15;
    return heft_get_half(b) * (0.5f + (float)code) * 0.25f;
}

/* Layout: scale; for each group an index of 9 bits and 7 bits of signs; 8 bytes of scales. */
void heft_decode_iq2_xs(float *out, const uint8_t *b)
{
    enum { CODES = 2, SCALES = 66 };
    for (uint32_t g = 0; g < GROUPS; g++) {
        uint32_t code = u16_at(b + CODES + 2 * g);
        put_entry(out + GROUP * g, &iq2_xs, code & 511, iq2_scale(b, b + SCALES, g),
                  heft_grid_signs(code >> 9));
    }
}

/* Layout: scale; 32 low bytes of indices; 32 bytes of signs; 8 bytes with the upper 2 bits of four
 * indices each; 8 bytes of scales. */
void heft_decode_iq2_s(float *out, const uint8_t *b)
{
    enum { LOW = 2, SIGNS = 34, HIGH = 66, SCALES = 74 };
    for (uint32_t g = 0; g < GROUPS; g++) {
        uint32_t high = b[HIGH + g / 4] >> g % 4 * 2 & 3u;
        put_entry(out + GROUP * g, &iq2_s, b[LOW + g] | high << 8, iq2_scale(b, b + SCALES, g),
                  b[SIGNS + g]);
    }
}

/* Decode two entries of four magnitudes. */
static void put_two(float *out, const book *k, const uint32_t entry[2], float scale, uint32_t signs)
{
    put_entry(out, k, entry[0], scale, signs);
    put_entry(out + GROUP / 2, k, entry[1], scale, signs >> 4);
}

/* Layout: scale; 64 indices of 8 bits; for each sub-block a word as in iq2_xxs. */
void heft_decode_iq3_xxs(float *out, const uint8_t *b)
{
    enum { INDICES = 2, WORDS = 66 };
    for (uint32_t g = 0; g < GROUPS; g++) {
        uint32_t word = heft_le32(b + WORDS + 4 * (g / SUB_BLOCK));
        uint32_t entry[2] = { b[INDICES + 2 * g], b[INDICES + 2 * g + 1] };
        float scale = heft_get_half(b) * (0.5f + (float)(word >> 28)) * 0.5f;
        put_two(out + GROUP * g, &iq3_xxs, entry, scale,
                heft_grid_signs(word >> 7 * (g % SUB_BLOCK) & 127));
    }
}

/* Layout: scale; 64 low bytes of indices; 8 bytes with the ninth bits; 32 bytes of signs; 4 bytes
 * with a scale of 4 bits for each sub-block. */
void heft_decode_iq3_s(float *out, const uint8_t *b)
{
    enum { LOW = 2, HIGH = 66, SIGNS = 74, SCALES = 106 };
    for (uint32_t g = 0; g < GROUPS; g++) {
        uint32_t sub = g / SUB_BLOCK, code = b[SCALES + sub / 2] >> sub % 2 * 4 & 15u;
        uint32_t high = (uint32_t)b[HIGH + sub] >> g % SUB_BLOCK * 2;
        uint32_t entry[2] = { b[LOW + 2 * g] | (high & 1) << 8, b[LOW + 2 * g + 1] | (high >> 1 & 1)
                                                                                         << 8 };
        put_two(out + GROUP * g, &iq3_s, entry, heft_get_half(b) * (float)(1 + 2 * code),
                b[SIGNS + g]);
    }
}

/* Decode an entry of iq1. */
static void put_shifted(float *out, uint32_t entry, float scale, bool is_less)
{
    for (uint32_t i = 0; i < GROUP; i++)
        out[i] = scale * ((float)number_at(&iq1, entry, i) + (is_less ? -0.125f : 0.125f));
}

/* Layout: scale; 32 low bytes of indices; for each sub-block a word: the upper 3 bits of four
 * indices, 3 bits of scale, and a bit that is set if 0.125 is subtracted rather than added. */
void heft_decode_iq1_s(float *out, const uint8_t *b)
{
    enum { LOW = 2, WORDS = 34 };
    for (uint32_t g = 0; g < GROUPS; g++) {
        uint32_t word = u16_at(b + WORDS + 2 * (g / SUB_BLOCK));
        uint32_t high = word >> g % SUB_BLOCK * 3 & 7;
        put_shifted(out + GROUP * g, b[LOW + g] | high << 8,
                    heft_get_half(b) * (float)(2 * (word >> 12 & 7) + 1), word >> 15);
    }
}

/* Layout: 32 low bytes of indices; 4 bits for each group: the upper 3 bits of the index, and the
 * bit that subtracts 0.125; four words with four scales of 3 bits, one for two groups.  The upper 4
 * bits of the words are the scale of the block, the lowest first. */
void heft_decode_iq1_m(float *out, const uint8_t *b)
{
    enum { HIGH = 32, WORDS = 48 };
    uint16_t half = 0;
    for (uint32_t i = 0; i < 4; i++)
        half = (uint16_t)(half | u16_at(b + WORDS + 2 * i) >> 12 << 4 * i);
    for (uint32_t g = 0; g < GROUPS; g++) {
        uint32_t high = b[HIGH + g / 2] >> g % 2 * 4 & 15u, k = g / 2;
        uint32_t code = u16_at(b + WORDS + 2 * (k / 4)) >> k % 4 * 3 & 7;
        float scale = heft_f32_of(heft_f16_to_f32(half)) * (float)(2 * code + 1);
        put_shifted(out + GROUP * g, b[g] | (high & 7) << 8, scale, high >> 3);
    }
}
