/* encode_blocks32.c - encoding of the block types of 32 elements with a scale and perhaps a
 * minimum. */
#include <string.h>

#include "model/block_layouts.h"
#include "model/encode_fits.h"
#include "model/encode_numbers.h"
#include "model/encode_rows.h"
#include "model/square_root.h"

typedef struct scaled {
    float scale, minimum;
    uint8_t codes[ELEMENTS32];
} scaled;

static int32_t top_code(const block32 *l)
{
    return l->high_at ? 31 : 15;
}

/* ---- the range of a block decides ---- */

/* The element of the greatest magnitude gets the code 0, so that the other sign has a code less. */
static void scale_symmetric(scaled *s, const block32 *l, const float *x)
{
    float most = 0, extreme = 0;
    for (uint32_t i = 0; i < ELEMENTS32; i++)
        if (heft_magnitude(x[i]) > most) {
            most = heft_magnitude(x[i]);
            extreme = x[i];
        }

    s->scale = extreme / -(float)l->zero_code;
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

/* ---- importance decides ---- */

static float mean_square(const float *row, size_t n)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += row[i] * row[i];
    return sum / (float)n;
}

static void scale_weighted(scaled *s, const block32 *l, const float *x, const float *importance,
                           float variance)
{
    const heft_affine_fit fit = { ELEMENTS32, top_code(l), -0.9f, 0.05f, 37, false };
    float weights[ELEMENTS32];
    for (uint32_t i = 0; i < ELEMENTS32; i++)
        weights[i] = importance[i] * heft_square_root(variance + x[i] * x[i]);
    s->minimum = 0;
    if (!l->minimum_at) {
        s->scale = heft_fit_symmetric(ELEMENTS32, l->zero_code, x, weights, s->codes);
        return;
    }
    s->scale = heft_fit_affine(&fit, x, weights, &s->minimum, s->codes);
    s->minimum = -s->minimum;
}

/* ---- blocks ---- */

static void put_block(uint8_t *b, const block32 *l, const scaled *s)
{
    heft_put_half(b, s->scale);
    if (l->minimum_at)
        heft_put_half(b + l->minimum_at, s->minimum);
    for (uint32_t i = 0; i < HALF32; i++)
        b[l->codes_at + i] = (uint8_t)((s->codes[i] & 15) | s->codes[i + HALF32] << 4);
    if (!l->high_at)
        return;
    memset(b + l->high_at, 0, ELEMENTS32 / 8);
    for (uint32_t i = 0; i < ELEMENTS32; i++)
        b[l->high_at + i / 8] |= (uint8_t)((s->codes[i] >> 4 & 1) << i % 8);
}

static void encode_row(uint8_t *out, const block32 *l, const float *row, size_t n,
                       const float *importance)
{
    float variance = importance ? mean_square(row, n) : 0;
    for (size_t i = 0; i < n; i += ELEMENTS32, out += l->codes_at + HALF32) {
        scaled s;
        if (importance)
            scale_weighted(&s, l, row + i, importance + i, variance);
        else if (l->minimum_at)
            scale_range(&s, l, row + i);
        else
            scale_symmetric(&s, l, row + i);
        put_block(out, l, &s);
    }
}

void heft_encode_q4_0(uint8_t *out, const float *row, size_t n, const float *importance)
{
    encode_row(out, &q4_0, row, n, importance);
}

void heft_encode_q4_1(uint8_t *out, const float *row, size_t n, const float *importance)
{
    encode_row(out, &q4_1, row, n, importance);
}

void heft_encode_q5_0(uint8_t *out, const float *row, size_t n, const float *importance)
{
    encode_row(out, &q5_0, row, n, importance);
}

void heft_encode_q5_1(uint8_t *out, const float *row, size_t n, const float *importance)
{
    encode_row(out, &q5_1, row, n, importance);
}

void heft_encode_q8_0(uint8_t *out, const float *row, size_t n, const float *importance)
{
    (void)importance;
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
