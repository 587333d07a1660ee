/* encode_tables.c - encoding of the types whose codes of 4 bits stand for numbers of a table. */
#include <string.h>

#include "model/block_layouts.h"
#include "model/encode_fits.h"
#include "model/encode_fp4.h"
#include "model/encode_rounding.h"

/* ---- iq4 ---- */

enum { IQ4_BATCH = HEFT_FIT_BATCH, GROUPS = HEFT_SUPER_BLOCK / ELEMENTS32 };

static void encode_group(uint8_t codes[HALF32], const float *x, float inverse)
{
    for (uint32_t i = 0; i < HALF32; i++)
        codes[i] = (uint8_t)(heft_nearest_number(inverse * x[i]) |
                             heft_nearest_number(inverse * x[i + HALF32]) << 4);
}

/* Weights use the mean square of the block, of `elements`; without importance they are squares. */
static void fit(float *scales, const float *x, size_t n, size_t elements, const float *importance,
                const heft_fits *fits)
{
    float weights[IQ4_BATCH];
    for (size_t at = 0; at < n; at += elements) {
        float variance = heft_sum_of_squares(x + at, elements) * (2 / (float)elements);
        if (importance)
            fits->weigh(weights + at, x + at, importance + at, elements, variance);
        for (size_t i = at; !importance && i < at + elements; i++)
            weights[i] = x[i] * x[i];
    }
    fits->numbers(n / ELEMENTS32, x, weights, scales);
}

void heft_encode_iq4_nl(uint8_t *out, const float *row, size_t n, const float *importance,
                        const heft_fits *fits)
{
    enum { CODES = 2, BYTES = 18 };
    float scales[IQ4_BATCH / ELEMENTS32];
    for (size_t at = 0, m; at < n; at += m) {
        m = n - at < IQ4_BATCH ? n - at : IQ4_BATCH;
        fit(scales, row + at, m, ELEMENTS32, importance ? importance + at : NULL, fits);
        for (size_t g = 0; g < m / ELEMENTS32; g++, out += BYTES) {
            heft_put_half(out, scales[g]);
            encode_group(out + CODES, row + at + g * ELEMENTS32, heft_reciprocal(scales[g]));
        }
    }
}

static void put_iq4_xs(uint8_t *b, const float scales[GROUPS], const float *x)
{
    enum { HIGH = 2, LOW = 4, CODES = 8, HALF = 32 };
    float most = 0, greatest = 0;
    for (uint32_t g = 0; g < GROUPS; g++)
        if (heft_magnitude(scales[g]) > most) {
            most = heft_magnitude(scales[g]);
            greatest = scales[g];
        }

    float scale = -greatest / HALF, inverse = heft_reciprocal(scale);
    heft_put_half(b, scale);
    memset(b + HIGH, 0, CODES - HIGH);
    for (uint32_t g = 0; g < GROUPS; g++) {
        int32_t code = heft_clamp(heft_nearest_int(inverse * scales[g]), -HALF, HALF - 1);
        /* The scale before it is rounded to f16. */
        encode_group(b + CODES + HALF32 * g, x + ELEMENTS32 * g,
                     heft_reciprocal(scale * (float)code));
        uint32_t stored = (uint32_t)(code + HALF);
        b[LOW + g / 2] |= (uint8_t)((stored & 15) << g % 2 * 4);
        b[HIGH + g / 4] |= (uint8_t)(stored >> 4 << g % 4 * 2);
    }
}

void heft_encode_iq4_xs(uint8_t *out, const float *row, size_t n, const float *importance,
                        const heft_fits *fits)
{
    enum { BYTES = 136 };
    float scales[IQ4_BATCH / ELEMENTS32];
    for (size_t at = 0, m; at < n; at += m) {
        m = n - at < IQ4_BATCH ? n - at : IQ4_BATCH;
        fit(scales, row + at, m, HEFT_SUPER_BLOCK, importance ? importance + at : NULL, fits);
        for (size_t i = 0; i < m; i += HEFT_SUPER_BLOCK, out += BYTES)
            put_iq4_xs(out, scales + i / ELEMENTS32, row + at + i);
    }
}

/* ---- fp4 ---- */

/* Return the code of the nearest number, the lowest of several. */
static uint32_t nearest_fp4(float v, float scale)
{
    uint32_t best = 0;
    float least = heft_magnitude((float)fp4_numbers[0] * scale - v);
    for (uint32_t i = 1; i < 16; i++) {
        float error = heft_magnitude((float)fp4_numbers[i] * scale - v);
        if (error < least) {
            least = error;
            best = i;
        }
    }
    return best;
}

static void put_fp4(uint8_t *codes, const float *x, uint32_t count, float scale)
{
    for (uint32_t i = 0; i < count; i++)
        codes[i] = (uint8_t)(nearest_fp4(x[i], scale) | nearest_fp4(x[i + count], scale) << 4);
}

static float greatest_magnitude(const float *x, uint32_t n)
{
    float most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = heft_magnitude(x[i]) > most ? heft_magnitude(x[i]) : most;
    return most;
}

/* Importance is not used. */
void heft_encode_mxfp4(uint8_t *out, const float *row, size_t n, const float *importance,
                       const heft_fits *fits)
{
    enum { BYTES = 17 };
    (void)importance, (void)fits;
    for (size_t at = 0; at < n; at += ELEMENTS32, out += BYTES) {
        out[0] = mxfp4_code(greatest_magnitude(row + at, ELEMENTS32));
        put_fp4(out + 1, row + at, HALF32, mxfp4_scale(out[0]));
    }
}

/* Importance is not used. */
void heft_encode_nvfp4(uint8_t *out, const float *row, size_t n, const float *importance,
                       const heft_fits *fits)
{
    enum { SCALES = 4, GROUP = 16, ELEMENTS = SCALES * GROUP, BYTES = 36 };
    (void)importance, (void)fits;
    for (size_t at = 0; at < n; at += ELEMENTS, out += BYTES)
        for (uint32_t g = 0; g < SCALES; g++) {
            const float *x = row + at + GROUP * g;
            out[g] = nvfp4_code(greatest_magnitude(x, GROUP));
            put_fp4(out + SCALES + GROUP / 2 * g, x, GROUP / 2, nvfp4_scale(out[g]));
        }
}
