/* encode_blocks32.c - encoding of the block types of 32 elements with a scale and perhaps a
 * minimum. */
#include <string.h>

#include "model/block_layouts.h"
#include "model/encode_fits.h"
#include "model/encode_rounding.h"

typedef struct scaled {
    float scale, minimum;
    uint8_t codes[ELEMENTS32];
} scaled;

static int32_t top_code(const block32 *l)
{
    return l->high_at ? 31 : 15;
}

enum { BATCH = HEFT_FIT_BATCH };

/* ---- the range of a block decides ---- */

/* The element of the greatest magnitude gets the code 0, so that the other sign has a code less. */
static void scale_symmetric(scaled *s, const block32 *l, const float *x)
{
    s->scale = heft_extreme(x, ELEMENTS32) / -(float)l->zero_code;
    s->minimum = 0;
    float inverse = heft_reciprocal(s->scale), to_code = (float)l->zero_code + 0.5f;
    for (uint32_t i = 0; i < ELEMENTS32; i++) {
        int8_t code = (int8_t)heft_truncated(x[i] * inverse + to_code);
        s->codes[i] = (uint8_t)(code < top_code(l) ? code : top_code(l));
    }
}

static void scale_range(scaled *s, const block32 *l, const float *x)
{
    const float most_f32 = 0x1.fffffep+127f;
    float min = most_f32, max = -most_f32;
    for (uint32_t i = 0; i < ELEMENTS32; i++) {
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
    }

    s->scale = (max - min) / (float)top_code(l);
    s->minimum = min;
    float inverse = heft_reciprocal(s->scale);
    for (uint32_t i = 0; i < ELEMENTS32; i++) {
        int8_t code = (int8_t)heft_truncated((x[i] - min) * inverse + 0.5f);
        s->codes[i] = (uint8_t)(code < top_code(l) ? code : top_code(l));
    }
}

/* ---- blocks ---- */

static void put_block(uint8_t *b, const block32 *l, float scale, float minimum,
                      const uint8_t codes[ELEMENTS32])
{
    heft_put_half(b, scale);
    if (l->minimum_at)
        heft_put_half(b + l->minimum_at, minimum);
    for (uint32_t i = 0; i < HALF32; i++)
        b[l->codes_at + i] = (uint8_t)((codes[i] & 15) | codes[i + HALF32] << 4);
    if (!l->high_at)
        return;
    memset(b + l->high_at, 0, ELEMENTS32 / 8);
    for (uint32_t i = 0; i < ELEMENTS32; i++)
        b[l->high_at + i / 8] |= (uint8_t)((codes[i] >> 4 & 1) << i % 8);
}

static void encode_ranges(uint8_t *out, const block32 *l, const float *row, size_t n)
{
    for (size_t i = 0; i < n; i += ELEMENTS32, out += l->codes_at + HALF32) {
        scaled s;
        if (l->minimum_at)
            scale_range(&s, l, row + i);
        else
            scale_symmetric(&s, l, row + i);
        put_block(out, l, s.scale, s.minimum, s.codes);
    }
}

static void encode_weighted(uint8_t *out, const block32 *l, const float *row, size_t n,
                            const float *importance, const heft_fits *fits)
{
    const heft_affine_fit fit = {
        .elements = ELEMENTS32, .top = top_code(l), .first = -0.9f, .step = 0.05f, .steps = 37
    };
    float variance = heft_sum_of_squares(row, n) / (float)n;
    float weights[BATCH], scales[BATCH / ELEMENTS32], minima[BATCH / ELEMENTS32] = { 0 };
    uint8_t codes[BATCH];
    for (size_t at = 0, m; at < n; at += m) {
        m = n - at < BATCH ? n - at : BATCH;
        fits->weigh(weights, row + at, importance + at, m, variance);
        if (l->minimum_at)
            fits->affine(&fit, m / ELEMENTS32, row + at, weights, scales, minima, codes);
        else
            fits->symmetric(ELEMENTS32, l->zero_code, m / ELEMENTS32, row + at, weights, scales,
                            codes);
        for (size_t g = 0; g < m / ELEMENTS32; g++, out += l->codes_at + HALF32)
            put_block(out, l, scales[g], -minima[g], codes + g * ELEMENTS32);
    }
}

static void encode_row(uint8_t *out, const block32 *l, const float *row, size_t n,
                       const float *importance, const heft_fits *fits)
{
    if (importance)
        encode_weighted(out, l, row, n, importance, fits);
    else
        encode_ranges(out, l, row, n);
}

void heft_encode_q4_0(uint8_t *out, const float *row, size_t n, const float *importance,
                      const heft_fits *fits)
{
    encode_row(out, &q4_0, row, n, importance, fits);
}

void heft_encode_q4_1(uint8_t *out, const float *row, size_t n, const float *importance,
                      const heft_fits *fits)
{
    encode_row(out, &q4_1, row, n, importance, fits);
}

void heft_encode_q5_0(uint8_t *out, const float *row, size_t n, const float *importance,
                      const heft_fits *fits)
{
    encode_row(out, &q5_0, row, n, importance, fits);
}

void heft_encode_q5_1(uint8_t *out, const float *row, size_t n, const float *importance,
                      const heft_fits *fits)
{
    encode_row(out, &q5_1, row, n, importance, fits);
}

/* Importance is not used. */
void heft_encode_q8_0(uint8_t *out, const float *row, size_t n, const float *importance,
                      const heft_fits *fits)
{
    (void)importance, (void)fits;
    for (size_t i = 0; i < n; i += ELEMENTS32, out += q8_0.codes_at + ELEMENTS32) {
        float most = 0;
        for (uint32_t k = 0; k < ELEMENTS32; k++) /* a NaN is followed by the next element */
            most = most > heft_magnitude(row[i + k]) ? most : heft_magnitude(row[i + k]);
        float scale = most / 127, inverse = heft_reciprocal(scale);
        heft_put_half(out, scale);
        for (uint32_t k = 0; k < ELEMENTS32; k++)
            out[q8_0.codes_at + k] = (uint8_t)heft_rounded(row[i + k] * inverse);
    }
}
