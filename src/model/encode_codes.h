/* encode_codes.h - codes of few bits in blocks of 256 elements; blocks.c describes the layouts. */
#ifndef HEFT_ENCODE_CODES_H
#define HEFT_ENCODE_CODES_H
#include <stdint.h>

enum { HEFT_SUPER_BLOCK = 256 };

/* Write bits `shift` and `shift` + 1 of all codes: 64 bytes. */
static inline void heft_put_two_bits(uint8_t *restrict out, const uint8_t *restrict codes,
                                     uint32_t shift)
{
    for (uint32_t at = 0; at < HEFT_SUPER_BLOCK; at += 128, out += 32)
        for (uint32_t i = 0; i < 32; i++) {
            const uint8_t *c = codes + at + i;
            out[i] = (uint8_t)((c[0] >> shift & 3) | (c[32] >> shift & 3) << 2 |
                               (c[64] >> shift & 3) << 4 | (c[96] >> shift & 3) << 6);
        }
}

/* Write the lower 4 bits of all codes: 128 bytes, where the lower halves of `run` bytes have the
 * first elements. */
static inline void heft_put_four_bits(uint8_t *restrict out, const uint8_t *restrict codes,
                                      uint32_t run)
{
    for (uint32_t at = 0; at < HEFT_SUPER_BLOCK; at += 2 * run, out += run)
        for (uint32_t i = 0; i < run; i++)
            out[i] = (uint8_t)((codes[at + i] & 15) | codes[at + run + i] << 4);
}

/* Write bit `shift` of all codes: 32 bytes, where byte i has the elements i, 32 + i and so on. */
static inline void heft_put_one_bit(uint8_t *restrict out, const uint8_t *restrict codes,
                                    uint32_t shift)
{
    uint8_t bits[32] = { 0 }; /* the loop over it is one of vectors */
    for (uint32_t k = 0; k < 8; k++, codes += 32)
        for (uint32_t i = 0; i < 32; i++)
            bits[i] |= (uint8_t)((codes[i] >> shift & 1) << k);
    for (uint32_t i = 0; i < 32; i++)
        out[i] = bits[i];
}

#endif
