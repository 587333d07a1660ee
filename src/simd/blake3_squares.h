/* blake3_squares.h - turns blocks into words of lanes, and back, in squares of four integers.
 *
 * A vector consists of pieces of 16 bytes.  Four vectors are transposed within their pieces: two
 * steps that stay in the pieces of a vector, whatever its length.  Piece g of vector k belongs to
 * input 4 g + k.  The file of an instruction set includes this header after it has defined
 *
 *   lanes, LANES     a vector of LANES 32-bit integers
 *   load_pieces      load 16 bytes at an offset of each fourth input
 *   zip_low, zip_high, zip_pairs_low, zip_pairs_high
 *                    interleave the integers, or pairs, of the lower or upper halves of pieces
 */
#ifndef HEFT_BLAKE3_SQUARES_H
#define HEFT_BLAKE3_SQUARES_H
#include <string.h>

static inline void transpose(lanes v[4])
{
    lanes a = zip_low(v[0], v[1]), b = zip_high(v[0], v[1]);
    lanes c = zip_low(v[2], v[3]), d = zip_high(v[2], v[3]);
    v[0] = zip_pairs_low(a, c);
    v[1] = zip_pairs_high(a, c);
    v[2] = zip_pairs_low(b, d);
    v[3] = zip_pairs_high(b, d);
}

static inline void load_blocks(lanes m[16], const uint8_t *const inputs[LANES], size_t at)
{
    for (unsigned i = 0; i < 16; i += 4) {
        for (unsigned k = 0; k < 4; k++)
            m[i + k] = load_pieces(inputs + k, at + i * sizeof(uint32_t));
        transpose(m + i);
    }
}

static inline void store_values(uint32_t (*out)[8], lanes cv[8], size_t n)
{
    uint32_t words[8][LANES];
    transpose(cv);
    transpose(cv + 4);
    memcpy(words, cv, sizeof words);
    for (size_t k = 0; k < n; k++) {
        memcpy(out[k], &words[k % 4][k / 4 * 4], 4 * sizeof **out);
        memcpy(out[k] + 4, &words[4 + k % 4][k / 4 * 4], 4 * sizeof **out);
    }
}

#endif
