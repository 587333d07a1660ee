/* packed.h - numbers of a few bits, packed into bytes. */
#ifndef HEFT_PACKED_H
#define HEFT_PACKED_H
#include <stddef.h>
#include <stdint.h>

#include "base/checked_math.h"
#include "model/packed_loops.h"

/* Return the little-endian word of 32 bits at p. */
static inline uint32_t heft_word_at(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Return the `bits` (1 to 8) bits from bit number `at` on, the lowest bit of a byte first.  Reads
 * the second byte only if the number crosses into it. */
static inline uint32_t heft_bits_at(const uint8_t *p, uint64_t at, uint32_t bits)
{
    uint32_t into = (uint32_t)(at % 8), v = (uint32_t)p[at / 8] >> into;
    if (into + bits > 8)
        v |= (uint32_t)p[at / 8 + 1] << (8 - into);
    return v & ((1U << bits) - 1);
}

/* Unpack `count` numbers of a dense stream from bit number `at` on; halves of bytes are the usual
 * case. */
static inline void heft_bits_unpack(float *out, const uint8_t *p, uint64_t at, uint32_t bits,
                                    size_t count)
{
    size_t i = 0;
    if (bits == 4 && at % 4 == 0) {
        p += at / 8;
        if (at % 8 && count)
            out[i++] = (float)(*p++ >> 4);
        size_t even = (count - i) / 2 * 2;
        heft_packed_now()->halves(out + i, p, even);
        if (i + even < count)
            out[i + even] = (float)(p[even / 2] & 15);
        return;
    }
    for (; i < count; i++)
        out[i] = (float)heft_bits_at(p, at + i * bits, bits);
}

/* Return the bit number of element k of a row: a dense stream, or whole elements in words of 32
 * bits. */
static inline uint64_t heft_bit_of(uint64_t k, uint32_t bits, bool is_aligned)
{
    uint64_t per_word = 32 / bits, word = is_aligned ? heft_div(k, per_word) : 0;
    return is_aligned ? word * 32 + (k - word * per_word) * bits : k * bits;
}

/* The numbers of E2M1: 1 bit of sign, 2 of exponent, 1 of mantissa. */
static const float heft_e2m1[16] = { 0,    0.5F,  1,   1.5F,  2,   3,   4,   6,
                                     -0.F, -0.5F, -1., -1.5F, -2., -3., -4., -6. };

/* Unpack `count` numbers of E2M1, two in a byte; is_odd: begin with the second of the first
 * byte. */
static inline void heft_e2m1_unpack(float *out, const uint8_t *p, bool is_odd, bool is_high_first,
                                    size_t count)
{
    size_t i = 0;
    uint32_t first = is_high_first ? 4 : 0, second = 4 - first;
    if (is_odd && count)
        out[i++] = heft_e2m1[*p++ >> second & 15];
    if (!is_high_first) {
        size_t even = (count - i) / 2 * 2;
        heft_packed_now()->e2m1(out + i, p, even);
        i += even;
        p += even / 2;
    }
    for (; i + 1 < count; i += 2, p++) {
        out[i] = heft_e2m1[*p >> first & 15];
        out[i + 1] = heft_e2m1[*p >> second & 15];
    }
    if (i < count)
        out[i] = heft_e2m1[*p >> first & 15];
}

#endif
