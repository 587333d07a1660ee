/* blocks.c - decoding of the block-quantised types that ggml defines.
 *
 * An element is scale * code, or scale * code +- minimum; the types iq4, mxfp4 and nvfp4 have a
 * table of the numbers that codes stand for.  Scales are f16, if not said otherwise.  K-quants have
 * blocks of 256 elements and multiply the scale by a small integer for each group of 16 or 32
 * elements.  All products are exact in f32, so each element is rounded at most once, with the same
 * result on every machine.  Bits are numbered from the lowest; codes are little-endian.
 */
#include "model/blocks.h"

#include "model/block_layouts.h"
#include "model/float.h"

/* ---- blocks of 32 ---- */

static void decode_block32(float *out, const uint8_t *b, const block32 *l)
{
    float scale = heft_get_half(b), minimum = l->minimum_at ? heft_get_half(b + l->minimum_at) : 0;
    const uint8_t *high = b + l->high_at, *codes = b + l->codes_at;
    for (uint32_t i = 0; i < ELEMENTS32; i++) {
        int32_t code = l->code_bits == 8 ? (int8_t)codes[i]
                                         : codes[i % HALF32] >> i / HALF32 * 4 & 15;
        if (l->high_at)
            code |= (high[i / 8] >> i % 8 & 1) << 4;
        out[i] = scale * (float)(code - l->zero_code);
        if (l->minimum_at)
            out[i] += minimum;
    }
}

/* ---- codes of 4 bits that stand for numbers ---- */

/* Decode 2 * count elements; the lower halves of the bytes are the first `count`. */
static void decode_numbers(float *out, const uint8_t *codes, uint32_t count, float scale,
                           const int8_t numbers[16])
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = scale * (float)numbers[codes[i] & 15];
        out[i + count] = scale * (float)numbers[codes[i] >> 4];
    }
}

/* Layout: scale, codes. */
static void decode_iq4_nl(float *out, const uint8_t *b)
{
    enum { CODES = 2 };
    decode_numbers(out, b + CODES, HALF32, heft_get_half(b), iq4_numbers);
}

/* Layout: scale; 16 bits, the upper 2 of each group scale; 4 bytes of the lower 4; codes, where 16
 * bytes have the 32 elements of a group. */
static void decode_iq4_xs(float *out, const uint8_t *b)
{
    enum { HIGH = 2, LOW = 4, CODES = 8, GROUPS = 8 };
    for (uint32_t g = 0; g < GROUPS; g++) {
        int32_t low = b[LOW + g / 2] >> g % 2 * 4 & 15, high = b[HIGH + g / 4] >> g % 4 * 2 & 3;
        decode_numbers(out + ELEMENTS32 * g, b + CODES + HALF32 * g, HALF32,
                       heft_get_half(b) * (float)((low | high << 4) - 32), iq4_numbers);
    }
}

/* Layout: scale as f8_e8m0, where 255 is a number like the others; codes. */
static void decode_mxfp4(float *out, const uint8_t *b)
{
    decode_numbers(out, b + 1, HALF32, mxfp4_scale(b[0]), fp4_numbers);
}

/* Layout: four scales as f8_e4m3 without a sign, codes, where 8 bytes have the 16 elements of a
 * scale.  A scale for the whole tensor is another tensor, which the decoded numbers do not have. */
static void decode_nvfp4(float *out, const uint8_t *b)
{
    enum { SCALES = 4, ELEMENTS = 16 };
    for (uint32_t k = 0; k < SCALES; k++)
        decode_numbers(out + ELEMENTS * k, b + SCALES + ELEMENTS / 2 * k, ELEMENTS / 2,
                       nvfp4_scale(b[k]), fp4_numbers);
}

/* ---- blocks of 64 and 128 ---- */

/* Layout: scale, bits: 1 stands for the scale, 0 for its negative. */
static void decode_q1_0(float *out, const uint8_t *b)
{
    enum { ELEMENTS = 128, BITS = 2 };
    float scale = heft_get_half(b);
    for (uint32_t i = 0; i < ELEMENTS; i++)
        out[i] = b[BITS + i / 8] >> i % 8 & 1 ? scale : -scale;
}

/* Layout: scale, codes of 2 bits, four in a byte, the first in the lowest bits.  Code 1 means 0. */
static void decode_q2_0(float *out, const uint8_t *b)
{
    enum { ELEMENTS = 64, CODES = 2, PER_BYTE = 4 };
    float scale = heft_get_half(b);
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        int32_t code = b[CODES + i / PER_BYTE] >> i % PER_BYTE * 2 & 3;
        out[i] = scale * (float)(code - 1);
    }
}

/* ---- blocks of 256 ---- */

enum { BLOCK = HEFT_BLOCK_ELEMENTS };

/* Return a code of 2 bits.  32 bytes have the codes of 128 elements, the first 32 elements in the
 * lowest bits. */
static uint32_t two_bits(const uint8_t *codes, uint32_t i)
{
    return codes[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
}

/* Return a code of 4 bits.  32 bytes have the codes of 64 elements, the first 32 elements in the
 * lower halves. */
static uint32_t four_bits(const uint8_t *codes, uint32_t i)
{
    return codes[i / 64 * 32 + i % 32] >> i % 64 / 32 * 4 & 15;
}

/* Layout: 16 bytes of group scale (lower half) and group minimum; 64 of codes; scale; minimum. */
static void decode_q2_k(float *out, const uint8_t *b)
{
    enum { CODES = 16, SCALE = 80, MINIMUM = 82 };
    float scale = heft_get_half(b + SCALE), minimum = heft_get_half(b + MINIMUM);
    for (uint32_t i = 0; i < BLOCK; i++) {
        float group_scale = scale * (float)(b[i / 16] & 15);
        float group_minimum = minimum * (float)(b[i / 16] >> 4);
        out[i] = group_scale * (float)two_bits(b + CODES, i) - group_minimum;
    }
}

/* Return a group scale; sixteen scales of 6 bits are in twelve bytes: first the lower 4 bits of all
 * scales, then the upper 2. */
static int32_t q3_k_scale(const uint8_t *p, uint32_t group)
{
    int32_t low = p[group % 8] >> group / 8 * 4 & 15, high = p[8 + group % 4] >> group / 4 * 2 & 3;
    return (low | high << 4) - 32;
}

/* Layout: 32 bytes of third bits, 64 of codes, 12 of group scales, scale. */
static void decode_q3_k(float *out, const uint8_t *b)
{
    enum { CODES = 32, SCALES = 96, SCALE = 108 };
    float scale = heft_get_half(b + SCALE);
    for (uint32_t i = 0; i < BLOCK; i++) {
        int32_t code = (int32_t)two_bits(b + CODES, i) - (b[i % 32] >> i / 32 & 1 ? 0 : 4);
        out[i] = scale * (float)q3_k_scale(b + SCALES, i / 16) * (float)code;
    }
}

/* Multiply *scale and *minimum by the numbers of a group.  Eight scales and eight minima of 6 bits
 * are in twelve bytes: the first four of each take a byte, whose upper two bits are the upper bits
 * of the last four. */
static void q4_k_scale(const uint8_t *p, uint32_t group, float *scale, float *minimum)
{
    uint32_t k = group % 4;
    bool upper = group > 3;
    *scale *= (float)(upper ? (p[8 + k] & 15) | p[k] >> 6 << 4 : p[k] & 63);
    *minimum *= (float)(upper ? p[8 + k] >> 4 | p[4 + k] >> 6 << 4 : p[4 + k] & 63);
}

/* Layout: scale, minimum, 12 bytes of group scales and minima, 32 bytes of fifth bits (q5_k only,
 * otherwise `high` is NULL), codes. */
static void decode_q45_k(float *out, const uint8_t *b, const uint8_t *high, const uint8_t *codes)
{
    enum { MINIMUM = 2, SCALES = 4, GROUP = 32 };
    for (uint32_t group = 0; group < BLOCK / GROUP; group++) {
        float scale = heft_get_half(b), minimum = heft_get_half(b + MINIMUM);
        q4_k_scale(b + SCALES, group, &scale, &minimum);
        for (uint32_t k = 0; k < GROUP; k++) {
            uint32_t code = four_bits(codes, group * GROUP + k);
            if (high)
                code |= (high[k] >> group & 1u) << 4;
            out[group * GROUP + k] = scale * (float)code - minimum;
        }
    }
}

static void decode_q4_k(float *out, const uint8_t *b)
{
    enum { CODES = 16 };
    decode_q45_k(out, b, NULL, b + CODES);
}

static void decode_q5_k(float *out, const uint8_t *b)
{
    enum { HIGH = 16, CODES = 48 };
    decode_q45_k(out, b, b + HIGH, b + CODES);
}

/* Layout: 128 bytes of the lower 4 bits, where 64 bytes have 128 elements and the lower halves are
 * the first 64; 64 bytes of the upper 2 bits; 16 group scales; scale. */
static void decode_q6_k(float *out, const uint8_t *b)
{
    enum { HIGH = 128, SCALES = 192, SCALE = 208 };
    float scale = heft_get_half(b + SCALE);
    for (uint32_t i = 0; i < BLOCK; i++) {
        uint32_t low = b[i / 128 * 64 + i % 64] >> i % 128 / 64 * 4 & 15;
        int32_t code = (int32_t)(low | two_bits(b + HIGH, i) << 4) - 32;
        out[i] = scale * (float)(int8_t)b[SCALES + i / 16] * (float)code;
    }
}

/* Layout: scale as f32, codes, sums of codes. */
static void decode_q8_k(float *out, const uint8_t *b)
{
    enum { CODES = 4 };
    uint32_t bits = (uint32_t)(b[0] | b[1] << 8) | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    for (uint32_t i = 0; i < BLOCK; i++)
        out[i] = heft_f32_of(bits) * (float)(int8_t)b[CODES + i];
}

/* Layout: 64 bytes of codes of 2 bits, the scale.  Code 1 means 0. */
static void decode_tq2_0(float *out, const uint8_t *b)
{
    enum { SCALE = 64 };
    float scale = heft_get_half(b + SCALE);
    for (uint32_t i = 0; i < BLOCK; i++)
        out[i] = (float)((int32_t)two_bits(b, i) - 1) * scale;
}

/* Decode the first `digits` digits of base 3 of `count` bytes: the first digits of all bytes, then
 * the second ones.  A byte is a fraction: digit n is the integral part of three times the fraction
 * that 3^n leaves.  Digit 1 means 0. */
static float *decode_digits(float *out, const uint8_t *p, uint32_t count, uint32_t digits,
                            float scale)
{
    for (uint32_t n = 0, power = 1; n < digits; n++, power *= 3)
        for (uint32_t i = 0; i < count; i++)
            *out++ = (float)((int32_t)((p[i] * power & 255) * 3 >> 8) - 1) * scale;
    return out;
}

/* Layout: 48 bytes of five digits, 4 bytes of four digits, the scale. */
static void decode_tq1_0(float *out, const uint8_t *b)
{
    enum { SCALE = 52 };
    float scale = heft_get_half(b + SCALE);
    out = decode_digits(out, b, 32, 5, scale);
    out = decode_digits(out, b + 32, 16, 5, scale);
    decode_digits(out, b + 48, 4, 4, scale);
}

/* ---- the table ---- */

/* A type with neither `layout` nor `decode` is opaque. */
static const struct {
    const block32 *layout;
    void (*decode)(float *out, const uint8_t *block);
} rows[HEFT_DTYPES] = {
    [HEFT_Q4_0] = { .layout = &q4_0 },
    [HEFT_Q4_1] = { .layout = &q4_1 },
    [HEFT_Q5_0] = { .layout = &q5_0 },
    [HEFT_Q5_1] = { .layout = &q5_1 },
    [HEFT_Q8_0] = { .layout = &q8_0 },
    [HEFT_Q8_1] = { .layout = &q8_1 },
    [HEFT_Q2_K] = { .decode = decode_q2_k },
    [HEFT_Q3_K] = { .decode = decode_q3_k },
    [HEFT_Q4_K] = { .decode = decode_q4_k },
    [HEFT_Q5_K] = { .decode = decode_q5_k },
    [HEFT_Q6_K] = { .decode = decode_q6_k },
    [HEFT_Q8_K] = { .decode = decode_q8_k },
    [HEFT_IQ4_NL] = { .decode = decode_iq4_nl },
    [HEFT_IQ4_XS] = { .decode = decode_iq4_xs },
    [HEFT_Q1_0] = { .decode = decode_q1_0 },
    [HEFT_Q2_0] = { .decode = decode_q2_0 },
    [HEFT_TQ1_0] = { .decode = decode_tq1_0 },
    [HEFT_TQ2_0] = { .decode = decode_tq2_0 },
    [HEFT_MXFP4] = { .decode = decode_mxfp4 },
    [HEFT_NVFP4] = { .decode = decode_nvfp4 },
    [HEFT_IQ2_XXS] = { .decode = heft_decode_iq2_xxs },
    [HEFT_IQ2_XS] = { .decode = heft_decode_iq2_xs },
    [HEFT_IQ2_S] = { .decode = heft_decode_iq2_s },
    [HEFT_IQ3_XXS] = { .decode = heft_decode_iq3_xxs },
    [HEFT_IQ3_S] = { .decode = heft_decode_iq3_s },
    [HEFT_IQ1_S] = { .decode = heft_decode_iq1_s },
    [HEFT_IQ1_M] = { .decode = heft_decode_iq1_m },
};

bool heft_block_is_known(heft_dtype t)
{
    return t < HEFT_DTYPES && (rows[t].layout || rows[t].decode);
}

void heft_decode_block(float out[HEFT_BLOCK_ELEMENTS], heft_dtype t, const uint8_t *block)
{
    if (rows[t].layout)
        decode_block32(out, block, rows[t].layout);
    else
        rows[t].decode(out, block);
}
