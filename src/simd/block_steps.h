/* block_steps.h - decoding of block types in loops that compilers vectorise.  model/blocks.c is the
 * specification and describes the layouts.  All products are exact in f32, so the order of the
 * factors does not matter. */
#ifndef HEFT_BLOCK_STEPS_H
#define HEFT_BLOCK_STEPS_H
#include "model/block_layouts.h"
#include "model/blocks.h"
#include "simd/instructions.h"

static inline float half_at(const uint8_t *p)
{
    return heft_f16_number((uint16_t)(p[0] | p[1] << 8));
}

static inline uint32_t word_at(const uint8_t *p)
{
    return (uint32_t)(p[0] | p[1] << 8) | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* True if an f16 is neither NaN nor infinite.  Compilers may change the sign of a NaN that an
 * operation returns, so that only the portable form decodes blocks with other scales. */
static inline bool is_finite(const uint8_t *half)
{
    return (half[1] & 0x7C) != 0x7C;
}

/* ---- blocks of 32 ---- */

/* Read codes of 4 bits, and the fifth bits if the layout has them. */
static inline void load_codes32(int32_t *codes, const uint8_t *b, block32 l)
{
    uint32_t high = l.high_at ? word_at(b + l.high_at) : 0;
    for (uint32_t i = 0; i < HALF32; i++)
        codes[i] = b[l.codes_at + i] & 15;
    for (uint32_t i = 0; i < HALF32; i++)
        codes[i + HALF32] = b[l.codes_at + i] >> 4;
    for (uint32_t i = 0; l.high_at && i < ELEMENTS32; i++)
        codes[i] |= (int32_t)(high >> i & 1) << 4;
}

static inline void decode_block32(float *restrict out, const uint8_t *restrict b, block32 l)
{
    float scale = half_at(b), minimum = l.minimum_at ? half_at(b + l.minimum_at) : 0;
    int32_t codes[ELEMENTS32];
    if (l.code_bits == 4)
        load_codes32(codes, b, l);
    for (uint32_t i = 0; l.code_bits == 8 && i < ELEMENTS32; i += 16)
        heft_put_scaled(out + i, (const int8_t *)b + l.codes_at + i, scale);
    for (uint32_t i = 0; l.code_bits == 4 && i < ELEMENTS32; i++)
        out[i] = scale * (float)(codes[i] - l.zero_code);
    for (uint32_t i = 0; l.minimum_at && i < ELEMENTS32; i++)
        out[i] += minimum;
}

/* ---- blocks of 256 ---- */

enum { BLOCK = HEFT_BLOCK_ELEMENTS, GROUP = 16, GROUPS = BLOCK / GROUP };

/* Return where the codes of 2 bits of a group of 16 elements are: 32 bytes have the codes of 128
 * elements, the first 32 elements in the lowest bits.  *shift: bits below the codes. */
static inline const uint8_t *two_bits(const uint8_t *codes, uint32_t group, uint32_t *shift)
{
    *shift = group % 8 / 2 * 2;
    return codes + group / 8 * 32 + group % 2 * GROUP;
}

/* Layout: 16 bytes of group scale (lower half) and group minimum; 64 of codes; scale; minimum. */
static inline void decode_q2_k(float *restrict out, const uint8_t *restrict b)
{
    enum { CODES = 16, SCALE = 80, MINIMUM = 82 };
    float scale = half_at(b + SCALE), minimum = half_at(b + MINIMUM);
    for (uint32_t group = 0; group < GROUPS; group++, out += GROUP) {
        float group_scale = scale * (float)(b[group] & 15);
        float group_minimum = minimum * (float)(b[group] >> 4);
        uint32_t shift;
        const uint8_t *codes = two_bits(b + CODES, group, &shift);
        for (uint32_t k = 0; k < GROUP; k++)
            out[k] = group_scale * (float)(codes[k] >> shift & 3) - group_minimum;
    }
}

/* Return a group scale; sixteen scales of 6 bits are in twelve bytes: first the lower 4 bits of all
 * scales, then the upper 2. */
static inline int32_t q3_k_scale(const uint8_t *p, uint32_t group)
{
    int32_t low = p[group % 8] >> group / 8 * 4 & 15, high = p[8 + group % 4] >> group / 4 * 2 & 3;
    return (low | high << 4) - 32;
}

/* Layout: 32 bytes of third bits, 64 of codes, 12 of group scales, scale. */
static inline void decode_q3_k(float *restrict out, const uint8_t *restrict b)
{
    enum { CODES = 32, SCALES = 96, SCALE = 108 };
    float scale = half_at(b + SCALE);
    for (uint32_t group = 0; group < GROUPS; group++, out += GROUP) {
        float group_scale = scale * (float)q3_k_scale(b + SCALES, group);
        uint32_t shift, bit = group / 2;
        const uint8_t *codes = two_bits(b + CODES, group, &shift), *high = b + group % 2 * GROUP;
        for (uint32_t k = 0; k < GROUP; k++) {
            int32_t code = (codes[k] >> shift & 3) + (high[k] >> bit & 1) * 4 - 4;
            out[k] = group_scale * (float)code;
        }
    }
}

/* Multiply *scale and *minimum by the numbers of a group.  Eight scales and eight minima of 6 bits
 * are in twelve bytes: the first four of each take a byte, whose upper two bits are the upper bits
 * of the last four. */
static inline void q4_k_scale(const uint8_t *p, uint32_t group, float *scale, float *minimum)
{
    uint32_t k = group % 4;
    bool upper = group > 3;
    *scale *= (float)(upper ? (p[8 + k] & 15) | p[k] >> 6 << 4 : p[k] & 63);
    *minimum *= (float)(upper ? p[8 + k] >> 4 | p[4 + k] >> 6 << 4 : p[4 + k] & 63);
}

/* Layout: scale, minimum, 12 bytes of group scales and minima, 32 bytes of fifth bits (q5_k only,
 * otherwise `high` is NULL), codes: 32 bytes have 64 elements, the first 32 in the lower halves. */
static inline void decode_q45_k(float *restrict out, const uint8_t *b, const uint8_t *high,
                                const uint8_t *codes)
{
    enum { MINIMUM = 2, SCALES = 4, LARGE_GROUP = 32 };
    for (uint32_t group = 0; group < BLOCK / LARGE_GROUP; group++, out += LARGE_GROUP) {
        float scale = half_at(b), minimum = half_at(b + MINIMUM);
        const uint8_t *p = codes + group / 2 * LARGE_GROUP;
        uint32_t shift = group % 2 * 4;
        q4_k_scale(b + SCALES, group, &scale, &minimum);
        uint8_t numbers[LARGE_GROUP], bit = (uint8_t)(1 << group);
        for (uint32_t k = 0; k < LARGE_GROUP; k++)
            numbers[k] = (uint8_t)((p[k] >> shift & 15) | (high && high[k] & bit ? 16 : 0));
        for (uint32_t k = 0; k < LARGE_GROUP; k += GROUP)
            heft_put_affine(out + k, numbers + k, scale, minimum);
    }
}

static inline void decode_q4_k(float *restrict out, const uint8_t *restrict b)
{
    enum { CODES = 16 };
    decode_q45_k(out, b, NULL, b + CODES);
}

static inline void decode_q5_k(float *restrict out, const uint8_t *restrict b)
{
    enum { HIGH = 16, CODES = 48 };
    decode_q45_k(out, b, b + HIGH, b + CODES);
}

/* Layout: 128 bytes of the lower 4 bits, where 64 bytes have 128 elements and the lower halves are
 * the first 64; 64 bytes of the upper 2 bits; 16 group scales; scale. */
static inline void decode_q6_k(float *restrict out, const uint8_t *restrict b)
{
    enum { HIGH = 128, SCALES = 192, SCALE = 208 };
    float scale = half_at(b + SCALE);
    for (uint32_t group = 0; group < GROUPS; group++, out += GROUP) {
        float group_scale = scale * (float)(int8_t)b[SCALES + group];
        uint32_t shift, low_shift = group % 8 / 4 * 4;
        const uint8_t *high = two_bits(b + HIGH, group, &shift);
        const uint8_t *low = b + group / 8 * 64 + group % 4 * GROUP;
        for (uint32_t k = 0; k < GROUP; k++) {
            int32_t code = (low[k] >> low_shift & 15) + (high[k] >> shift & 3) * 16 - 32;
            out[k] = group_scale * (float)code;
        }
    }
}

#endif
