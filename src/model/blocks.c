/* blocks.c - decoding of block-quantised types, as ggml defines them.
 *
 * An element is scale * code, or scale * code - minimum.  Scales are f16; those of the k-quants, which
 * have blocks of 256 elements, are multiplied by a small integer for each group of 16 or 32.  All products
 * are exact in f32, so that each element is rounded at most once and comes out the same everywhere.
 * Bits are counted from the lowest, codes are little-endian.
 */
#include "model/blocks.h"

#include "model/dtype.h"
#include "model/float.h"

static float half_at(const uint8_t *p)
{
    return heft_f32_of(heft_f16_to_f32((uint16_t)(p[0] | p[1] << 8)));
}

/* ---- blocks of 32 ---- */

typedef struct simple {
    uint8_t minimum; /* where it is; 0: there is none.  The scale comes first */
    uint8_t high;    /* where the fifth bits are: 32 of them; 0: there are none */
    uint8_t codes;
    uint8_t
        bits; /* of a code at its place: 4, the second half of the block above the first, or 8 */
    uint8_t zero; /* the code that means 0 */
} simple;

static const simple q4_0 = { 0, 0, 2, 4, 8 }, q4_1 = { 2, 0, 4, 4, 0 };
static const simple q5_0 = { 0, 2, 6, 4, 16 }, q5_1 = { 2, 4, 8, 4, 0 };
static const simple q8_0 = { 0, 0, 2, 8, 0 }, q8_1 = { 0, 0, 4, 8, 0 };

enum { SIMPLE = 32, HALF = SIMPLE / 2 };

static void decode_simple(float *out, const uint8_t *b, const simple *s)
{
    float scale = half_at(b), minimum = s->minimum ? half_at(b + s->minimum) : 0;
    const uint8_t *high = b + s->high, *codes = b + s->codes;
    for (uint32_t i = 0; i < SIMPLE; i++) {
        int32_t code = s->bits == 8 ? (int8_t)codes[i] : codes[i % HALF] >> i / HALF * 4 & 15;
        if (s->high)
            code |= (high[i / 8] >> i % 8 & 1) << 4;
        out[i] = scale * (float)(code - s->zero);
        if (s->minimum)
            out[i] += minimum;
    }
}

/* ---- blocks of 64 ---- */

/* Scale, then four codes of 2 bits in a byte, the lowest first; 1 means 0. */
static void decode_q2_0(float *out, const uint8_t *b)
{
    enum { ELEMENTS = 64, CODES = 2, PER_BYTE = 4 };
    float scale = half_at(b);
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        int32_t code = b[CODES + i / PER_BYTE] >> i % PER_BYTE * 2 & 3;
        out[i] = scale * (float)(code - 1);
    }
}

/* ---- blocks of 256 ---- */

enum { BLOCK = HEFT_BLOCK_ELEMENTS };

/* Codes of 2 bits: of each 128 elements the first 32 are the lowest bits of 32 bytes. */
static uint32_t two_bits(const uint8_t *codes, uint32_t i)
{
    return codes[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
}

/* Codes of 4 bits: of each 64 elements the first 32 are the lower halves of 32 bytes. */
static uint32_t four_bits(const uint8_t *codes, uint32_t i)
{
    return codes[i / 64 * 32 + i % 32] >> i % 64 / 32 * 4 & 15;
}

/* 16 bytes of scale and minimum, 4 bits each; 64 of codes; scale; minimum. */
static void decode_q2_k(float *out, const uint8_t *b)
{
    enum { CODES = 16, SCALE = 80, MINIMUM = 82 };
    float scale = half_at(b + SCALE), minimum = half_at(b + MINIMUM);
    for (uint32_t i = 0; i < BLOCK; i++) {
        float own = scale * (float)(b[i / 16] & 15), least = minimum * (float)(b[i / 16] >> 4);
        out[i] = own * (float)two_bits(b + CODES, i) - least;
    }
}

/* Sixteen of 6 bits in twelve bytes: the lower 4 of all, then the upper 2. */
static int32_t q3_k_scale(const uint8_t *p, uint32_t group)
{
    int32_t low = p[group % 8] >> group / 8 * 4 & 15, high = p[8 + group % 4] >> group / 4 * 2 & 3;
    return (low | high << 4) - 32;
}

/* 32 bytes of third bits, 64 of codes, 12 of scales, scale. */
static void decode_q3_k(float *out, const uint8_t *b)
{
    enum { CODES = 32, SCALES = 96, SCALE = 108 };
    float scale = half_at(b + SCALE);
    for (uint32_t i = 0; i < BLOCK; i++) {
        int32_t code = (int32_t)two_bits(b + CODES, i) - (b[i % 32] >> i / 32 & 1 ? 0 : 4);
        out[i] = scale * (float)q3_k_scale(b + SCALES, i / 16) * (float)code;
    }
}

/* Eight scales and eight minima of 6 bits in twelve bytes: four of each with two bits to spare,
 * which the other four have as their upper ones. */
static void q4_k_scale(const uint8_t *p, uint32_t group, float *scale, float *minimum)
{
    uint32_t k = group % 4;
    bool upper = group > 3;
    *scale *= (float)(upper ? (p[8 + k] & 15) | p[k] >> 6 << 4 : p[k] & 63);
    *minimum *= (float)(upper ? p[8 + k] >> 4 | p[4 + k] >> 6 << 4 : p[4 + k] & 63);
}

/* Scale, minimum, 12 bytes of both for the groups; 32 bytes of fifth bits or none; codes. */
static void decode_q45_k(float *out, const uint8_t *b, const uint8_t *high, const uint8_t *codes)
{
    enum { MINIMUM = 2, SCALES = 4, GROUP = 32 };
    for (uint32_t group = 0; group < BLOCK / GROUP; group++) {
        float scale = half_at(b), minimum = half_at(b + MINIMUM);
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

/* 128 bytes of the lower 4 bits, of each 128 elements the first 64 the lower halves; 64 of the upper 2;
 * 16 scales; scale. */
static void decode_q6_k(float *out, const uint8_t *b)
{
    enum { HIGH = 128, SCALES = 192, SCALE = 208 };
    float scale = half_at(b + SCALE);
    for (uint32_t i = 0; i < BLOCK; i++) {
        uint32_t low = b[i / 128 * 64 + i % 64] >> i % 128 / 64 * 4 & 15;
        int32_t code = (int32_t)(low | two_bits(b + HIGH, i) << 4) - 32;
        out[i] = scale * (float)(int8_t)b[SCALES + i / 16] * (float)code;
    }
}

/* Scale as f32, codes, their sums. */
static void decode_q8_k(float *out, const uint8_t *b)
{
    enum { CODES = 4 };
    uint32_t bits = (uint32_t)(b[0] | b[1] << 8) | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    for (uint32_t i = 0; i < BLOCK; i++)
        out[i] = heft_f32_of(bits) * (float)(int8_t)b[CODES + i];
}

/* ---- the table ---- */

typedef struct numbers { /* of more than one byte: count of them from byte `at` on */
    uint16_t at;
    uint8_t count, size;
} numbers;

/* A type without a row is copied, from little-endian files only; one that has neither of the first two is opaque. */
static const struct {
    const simple *simple;                             /* how elements are decoded, */
    void (*decode)(float *out, const uint8_t *block); /* or what decodes them */
    bool can_turn; /* all its numbers of more than one byte are known */
    numbers numbers[2];
} rows[HEFT_DTYPES] = {
    [HEFT_Q4_0] = { &q4_0, NULL, true, { { 0, 1, 2 } } },
    [HEFT_Q4_1] = { &q4_1, NULL, true, { { 0, 2, 2 } } },
    [HEFT_Q5_0] = { &q5_0, NULL, true, { { 0, 1, 2 }, { 2, 1, 4 } } },
    [HEFT_Q5_1] = { &q5_1, NULL, true, { { 0, 2, 2 }, { 4, 1, 4 } } },
    [HEFT_Q8_0] = { &q8_0, NULL, true, { { 0, 1, 2 } } },
    [HEFT_Q8_1] = { &q8_1, NULL, true, { { 0, 2, 2 } } },
    [HEFT_Q2_K] = { NULL, decode_q2_k, true, { { 80, 2, 2 } } },
    [HEFT_Q3_K] = { NULL, decode_q3_k, true, { { 108, 1, 2 } } },
    [HEFT_Q4_K] = { NULL, decode_q4_k, true, { { 0, 2, 2 } } },
    [HEFT_Q5_K] = { NULL, decode_q5_k, true, { { 0, 2, 2 } } },
    [HEFT_Q6_K] = { NULL, decode_q6_k, true, { { 208, 1, 2 } } },
    [HEFT_Q8_K] = { NULL, decode_q8_k, true, { { 0, 1, 4 }, { 260, 16, 2 } } },
    [HEFT_IQ4_NL] = { NULL, NULL, true, { { 0, 1, 2 } } },
    [HEFT_IQ4_XS] = { NULL, NULL, true, { { 0, 2, 2 } } },
    [HEFT_Q1_0] = { NULL, NULL, true, { { 0, 1, 2 } } },
    [HEFT_Q2_0] = { NULL, decode_q2_0, true, { { 0, 1, 2 } } },
    [HEFT_TQ1_0] = { NULL, NULL, true, { { 52, 1, 2 } } },
    [HEFT_TQ2_0] = { NULL, NULL, true, { { 64, 1, 2 } } },
    [HEFT_MXFP4] = { NULL, NULL, true, { { 0, 0, 0 } } },
    [HEFT_NVFP4] = { NULL, NULL, true, { { 0, 0, 0 } } },
};

bool heft_block_is_known(heft_dtype t)
{
    return t < HEFT_DTYPES && (rows[t].simple || rows[t].decode);
}

void heft_block_decode(float out[HEFT_BLOCK_ELEMENTS], heft_dtype t, const uint8_t *block)
{
    if (rows[t].simple)
        decode_simple(out, block, rows[t].simple);
    else
        rows[t].decode(out, block);
}

/* ---- the order of bytes ---- */

bool heft_block_can_byteswap(heft_dtype t)
{
    return t < HEFT_DTYPES && rows[t].can_turn;
}

void heft_block_byteswap(uint8_t *block, heft_dtype t)
{
    for (uint32_t i = 0; i < 2; i++) {
        const numbers *n = &rows[t].numbers[i];
        for (uint8_t *p = block + n->at, *end = p + n->count * n->size; p < end; p += n->size)
            for (uint32_t a = 0, b = n->size - 1u; a < b; a++, b--) {
                uint8_t moved = p[a];
                p[a] = p[b];
                p[b] = moved;
            }
    }
}
