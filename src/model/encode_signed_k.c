/* encode_signed_k.c - encoding of the k-quants without a minimum: q3_k, q6_k and q8_k. */
#include <string.h>

#include "model/encode_fits.h"
#include "model/encode_rounding.h"

enum { GROUP = 16, BATCH = HEFT_FIT_BATCH, SUPER = HEFT_SUPER_BLOCK, GROUPS = SUPER / GROUP };

/* Compute codes for the rounded scales of groups; groups whose scale is 0 keep those of the search.
 */
static void encode_again(uint8_t *codes, const float scales[GROUPS], int32_t half, const float *x,
                         const heft_fits *fits)
{
    for (uint32_t g = 0; g < GROUPS; g++)
        if (scales[g] != 0)
            fits->codes(codes + GROUP * g, x + GROUP * g, GROUP, 0, scales[g], -half, half - 1);
}

/* ---- q3_k ---- */

enum { Q3_BYTES = 110, Q3_HALF = 4, Q3_SCALE_HALF = 32 };
enum { Q3_CODES = 32, Q3_SCALES = 96, Q3_SCALE = 108 };

/* Set group scales from 0 to 63, where 32 means 0, and write the scale of the block. */
static void round_q3_scales(uint8_t *b, uint8_t codes[GROUPS], const float scales[GROUPS])
{
    float greatest = heft_extreme(scales, GROUPS);
    float inverse = greatest != 0 ? -(float)Q3_SCALE_HALF / greatest : 0;
    for (uint32_t g = 0; g < GROUPS; g++) {
        int32_t code = heft_clamp(heft_nearest_int(inverse * scales[g]), -Q3_SCALE_HALF,
                                  Q3_SCALE_HALF - 1);
        codes[g] = greatest != 0 ? (uint8_t)(code + Q3_SCALE_HALF) : 0;
    }
    heft_put_half(b + Q3_SCALE, greatest != 0 ? 1 / inverse : 0);
}

static void fit_q3_scales(uint8_t *b, uint8_t codes[GROUPS], const float scales[GROUPS],
                          const float *weights, const heft_fits *fits)
{
    float sums[GROUPS] = { 0 }, scale;
    for (uint32_t i = 0; i < SUPER; i++)
        sums[i / GROUP] += weights[i];
    fits->symmetric(GROUPS, Q3_SCALE_HALF, 1, scales, sums, &scale, codes);
    heft_put_half(b + Q3_SCALE, scale);
}

static void put_q3_k(uint8_t *b, const uint8_t group_scales[GROUPS], uint8_t *codes, const float *x,
                     const heft_fits *fits)
{
    float scales[GROUPS], scale = heft_get_half(b + Q3_SCALE);
    memset(b + Q3_SCALES, 0, Q3_SCALE - Q3_SCALES);
    for (uint32_t g = 0; g < GROUPS; g++) {
        b[Q3_SCALES + g % 8] |= (uint8_t)((group_scales[g] & 15) << g / 8 * 4);
        b[Q3_SCALES + 8 + g % 4] |= (uint8_t)(group_scales[g] >> 4 << g / 4 * 2);
        scales[g] = scale * (float)(group_scales[g] - Q3_SCALE_HALF);
    }
    encode_again(codes, scales, Q3_HALF, x, fits);
    heft_put_one_bit(b, codes, 2);
    heft_put_two_bits(b + Q3_CODES, codes, 0);
}

static void encode_q3_weighted(uint8_t *out, const float *row, size_t n, const float *importance,
                               const heft_fits *fits)
{
    float weights[BATCH], scales[BATCH / GROUP];
    uint8_t codes[BATCH], group_scales[GROUPS];
    for (size_t at = 0, m; at < n; at += m) {
        m = n - at < BATCH ? n - at : BATCH;
        for (size_t i = 0; i < m; i += SUPER) {
            float variance = 2 * heft_sum_of_squares(row + at + i, SUPER) / SUPER;
            fits->weigh(weights + i, row + at + i, importance + at + i, SUPER, variance);
        }
        fits->symmetric(GROUP, Q3_HALF, m / GROUP, row + at, weights, scales, codes);
        for (size_t i = 0; i < m; i += SUPER, out += Q3_BYTES) {
            fit_q3_scales(out, group_scales, scales + i / GROUP, weights + i, fits);
            put_q3_k(out, group_scales, codes + i, row + at + i, fits);
        }
    }
}

/* The search is faster with more groups: few of them need all of its rounds. */
void heft_encode_q3_k(uint8_t *out, const float *row, size_t n, const float *importance,
                      const heft_fits *fits)
{
    enum { LARGE = 4 * BATCH };
    float scales[LARGE / GROUP];
    uint8_t codes[LARGE], group_scales[GROUPS];
    if (importance) {
        encode_q3_weighted(out, row, n, importance, fits);
        return;
    }
    for (size_t at = 0, m; at < n; at += m) {
        m = n - at < LARGE ? n - at : LARGE;
        fits->refined(m / GROUP, row + at, scales, codes);
        for (size_t i = 0; i < m; i += SUPER, out += Q3_BYTES) {
            round_q3_scales(out, group_scales, scales + i / GROUP);
            put_q3_k(out, group_scales, codes + i, row + at + i, fits);
        }
    }
}

/* ---- q6_k ---- */

enum { Q6_BYTES = 210, Q6_HALF = 32, Q6_HIGH = 128, Q6_SCALES = 192, Q6_SCALE = 208 };

static void put_q6_k(uint8_t *b, const float *searched, uint8_t *codes, const float *x,
                     const heft_fits *fits)
{
    enum { RUN = 64, HIGH_SHIFT = 4, TOP = 127 };
    const float least_magnitude = 1e-15f;
    float scales[GROUPS], greatest = heft_extreme(searched, GROUPS), inverse = -128.0f / greatest;
    if (heft_magnitude(greatest) < least_magnitude) {
        memset(b, 0, Q6_BYTES);
        return;
    }

    heft_put_half(b + Q6_SCALE, 1 / inverse);
    for (uint32_t g = 0; g < GROUPS; g++) {
        int32_t code = heft_nearest_int(inverse * searched[g]);
        int8_t group_scale = (int8_t)(code < TOP ? code : TOP);
        b[Q6_SCALES + g] = (uint8_t)group_scale;
        scales[g] = heft_get_half(b + Q6_SCALE) * (float)group_scale;
    }
    encode_again(codes, scales, Q6_HALF, x, fits);
    heft_put_four_bits(b, codes, RUN);
    heft_put_two_bits(b + Q6_HIGH, codes, HIGH_SHIFT);
}

/* Importance weighs the elements as it is. */
void heft_encode_q6_k(uint8_t *out, const float *row, size_t n, const float *importance,
                      const heft_fits *fits)
{
    float scales[BATCH / GROUP];
    uint8_t codes[BATCH];
    for (size_t at = 0, m; at < n; at += m) {
        m = n - at < BATCH ? n - at : BATCH;
        fits->symmetric(GROUP, Q6_HALF, m / GROUP, row + at, importance ? importance + at : NULL,
                        scales, codes);
        for (size_t i = 0; i < m; i += SUPER, out += Q6_BYTES)
            put_q6_k(out, scales + i / GROUP, codes + i, row + at + i, fits);
    }
}

/* ---- q8_k ---- */

static void put_le32(uint8_t *p, uint32_t v)
{
    for (uint32_t i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static void encode_q8_k(uint8_t *b, const float *x)
{
    enum { CODES = 4, SUMS = CODES + SUPER, TOP = 127 };
    float extreme = heft_extreme(x, SUPER);
    float inverse = extreme != 0 ? -127.0f / extreme : 0;
    put_le32(b, extreme != 0 ? heft_f32_bits(1 / inverse) : 0);
    for (uint32_t g = 0; g < GROUPS; g++) {
        int32_t sum = 0;
        for (uint32_t i = GROUP * g; i < GROUP * (g + 1); i++) {
            int32_t code = heft_nearest_int(inverse * x[i]);
            int8_t stored = (int8_t)(code < TOP ? code : TOP);
            b[CODES + i] = (uint8_t)stored;
            sum += stored;
        }
        b[SUMS + 2 * g] = (uint8_t)sum;
        b[SUMS + 2 * g + 1] = (uint8_t)((uint32_t)sum >> 8);
    }
}

/* Importance is not used. */
void heft_encode_q8_k(uint8_t *out, const float *row, size_t n, const float *importance,
                      const heft_fits *fits)
{
    enum { BYTES = 292 };
    (void)importance, (void)fits;
    for (size_t at = 0; at < n; at += SUPER, out += BYTES)
        encode_q8_k(out, row + at);
}
