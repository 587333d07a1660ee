/* encode_k.c - encoding of the k-quants that have a minimum: q2_k, q4_k and q5_k.
 *
 * Each group of 16 or 32 elements is searched for a scale and a minimum; these are rounded to small
 * integers that share a scale and a minimum of the block, and the codes are computed again. */
#include <string.h>

#include "model/encode_fits.h"
#include "model/encode_rounding.h"
#include "model/float.h"

enum { MOST_GROUPS = 16, BATCH = HEFT_FIT_BATCH, SUPER = HEFT_SUPER_BLOCK };

/* One block between the search and its bytes. */
typedef struct k_block {
    float scales[MOST_GROUPS], minima[MOST_GROUPS]; /* found by the search */
    uint8_t group_scales[MOST_GROUPS], group_minima[MOST_GROUPS];
    uint8_t scale[2], minimum[2]; /* f16 */
} k_block;

typedef struct k_type {
    heft_affine_fit plain, weighted; /* the searches without and with importance */
    int32_t top;                     /* the greatest group scale and minimum */
    bool clamps;                     /* group scales without importance, to `top` */
    float variance_factor; /* the mean square of a block times this one is added to squares */
    uint32_t bytes;
    /* Set weights of one group, for a search without importance. */
    void (*weigh)(float *weights, const float *x, uint32_t n);
    void (*put)(uint8_t *b, const k_block *k, const uint8_t *codes);
} k_type;

/* ---- weights ---- */

static void weigh_by_magnitude(float *weights, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        weights[i] = heft_magnitude(x[i]);
}

static void weigh_by_mean(float *weights, const float *x, uint32_t n)
{
    float mean = heft_square_root(heft_sum_of_squares(x, n) / (float)n);
    for (uint32_t i = 0; i < n; i++)
        weights[i] = mean + heft_magnitude(x[i]);
}

static void weigh(float *weights, const k_type *t, const float *x, size_t n,
                  const float *importance, const heft_fits *fits)
{
    uint32_t elements = t->plain.elements;
    for (size_t at = 0; !importance && at < n; at += elements)
        t->weigh(weights + at, x + at, elements);
    for (size_t at = 0; importance && at < n; at += SUPER) {
        float variance = t->variance_factor * heft_sum_of_squares(x + at, SUPER) / SUPER;
        fits->weigh(weights + at, x + at, importance + at, SUPER, variance);
    }
}

/* ---- scales of groups ---- */

static float greatest(const float *v, uint32_t n)
{
    float most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = v[i] > most ? v[i] : most;
    return most;
}

/* Round scales or minima so that the greatest one is `top`. */
static void round_groups(uint8_t *out, uint8_t half[2], const k_type *t, const float *v, uint32_t n)
{
    float most = greatest(v, n), inverse = most > 0 ? (float)t->top / most : 0;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t code = (uint8_t)heft_nearest_int(inverse * v[i]);
        out[i] = t->clamps && code > t->top ? (uint8_t)t->top : code;
    }
    heft_put_half(half, most > 0 ? most / (float)t->top : 0);
}

/* Weights of a group are those of all its elements. */
static void fit_groups(k_block *k, const k_type *t, const float *weights)
{
    uint32_t elements = t->plain.elements, groups = SUPER / elements;
    float sums[MOST_GROUPS] = { 0 };
    for (uint32_t i = 0; i < SUPER; i++)
        sums[i / elements] += weights[i];
    heft_put_half(k->scale, heft_fit_positive(groups, t->top, k->scales, sums, k->group_scales));
    heft_put_half(k->minimum, heft_fit_positive(groups, t->top, k->minima, sums, k->group_minima));
}

/* Compute codes for the rounded scales; groups whose scale is 0 keep the codes of the search. */
static void encode_again(uint8_t *codes, const k_block *k, const heft_affine_fit *f, const float *x,
                         const heft_fits *fits)
{
    float block_scale = heft_get_half(k->scale), block_minimum = heft_get_half(k->minimum);
    for (uint32_t g = 0, at = 0; at < SUPER; g++, at += f->elements) {
        float scale = block_scale * (float)k->group_scales[g];
        float minimum = block_minimum * (float)k->group_minima[g];
        if (scale != 0)
            fits->codes(codes + at, x + at, f->elements, minimum, scale, 0, f->top);
    }
}

static void encode_row(uint8_t *out, const k_type *t, const float *row, size_t n,
                       const float *importance, const heft_fits *fits)
{
    const heft_affine_fit *fit = importance ? &t->weighted : &t->plain;
    const uint32_t groups = SUPER / fit->elements;
    float weights[BATCH], scales[2 * MOST_GROUPS], minima[2 * MOST_GROUPS];
    uint8_t codes[BATCH];
    for (size_t at = 0, m; at < n; at += m) {
        m = n - at < BATCH ? n - at : BATCH;
        weigh(weights, t, row + at, m, importance ? importance + at : NULL, fits);
        fits->affine(fit, m / fit->elements, row + at, weights, scales, minima, codes);

        for (uint32_t b = 0; b < m / SUPER; b++, out += t->bytes) {
            k_block k;
            memcpy(k.scales, scales + b * groups, groups * sizeof *scales);
            memcpy(k.minima, minima + b * groups, groups * sizeof *minima);
            if (importance) {
                fit_groups(&k, t, weights + b * SUPER);
            } else {
                round_groups(k.group_scales, k.scale, t, k.scales, groups);
                round_groups(k.group_minima, k.minimum, t, k.minima, groups);
            }
            encode_again(codes + b * SUPER, &k, fit, row + at + b * SUPER, fits);
            t->put(out, &k, codes + b * SUPER);
        }
    }
}

/* ---- layouts ---- */

static void put_q2_k(uint8_t *b, const k_block *k, const uint8_t *codes)
{
    enum { CODES = 16, SCALE = 80, MINIMUM = 82 };
    for (uint32_t g = 0; g < SUPER / 16; g++)
        b[g] = (uint8_t)(k->group_scales[g] | k->group_minima[g] << 4);
    heft_put_two_bits(b + CODES, codes, 0);
    memcpy(b + SCALE, k->scale, sizeof k->scale);
    memcpy(b + MINIMUM, k->minimum, sizeof k->minimum);
}

/* Write what q4_k and q5_k begin with: scale, minimum, and 12 bytes of group scales and minima. */
static void put_scales(uint8_t *b, const k_block *k)
{
    enum { MINIMUM = 2, FIRST = 4, SECOND = 8, MIXED = 12 };
    memcpy(b, k->scale, sizeof k->scale);
    memcpy(b + MINIMUM, k->minimum, sizeof k->minimum);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t scale = k->group_scales[4 + i], minimum = k->group_minima[4 + i];
        b[FIRST + i] = (uint8_t)(k->group_scales[i] | scale >> 4 << 6);
        b[SECOND + i] = (uint8_t)(k->group_minima[i] | minimum >> 4 << 6);
        b[MIXED + i] = (uint8_t)((scale & 15) | (minimum & 15) << 4);
    }
}

static void put_q4_k(uint8_t *b, const k_block *k, const uint8_t *codes)
{
    enum { CODES = 16, RUN = 32 };
    put_scales(b, k);
    heft_put_four_bits(b + CODES, codes, RUN);
}

static void put_q5_k(uint8_t *b, const k_block *k, const uint8_t *codes)
{
    enum { HIGH = 16, CODES = 48, RUN = 32, FIFTH = 4 };
    put_scales(b, k);
    heft_put_one_bit(b + HIGH, codes, FIFTH);
    heft_put_four_bits(b + CODES, codes, RUN);
}

/* ---- types ---- */

static const k_type q2_k = {
    .plain = { 16, 3, -0.5f, 0.1f, 16, true },
    .weighted = { 16, 3, -0.9f, 0.05f, 37, false },
    .top = 15,
    .variance_factor = 1,
    .bytes = 84,
    .weigh = weigh_by_magnitude,
    .put = put_q2_k,
};

static const k_type q4_k = {
    .plain = { 32, 15, -1, 0.1f, 21, false },
    .weighted = { 32, 15, -0.9f, 0.05f, 37, false },
    .top = 63,
    .clamps = true,
    .variance_factor = 2,
    .bytes = 144,
    .weigh = weigh_by_mean,
    .put = put_q4_k,
};

static const k_type q5_k = {
    .plain = { 32, 31, -0.5f, 0.1f, 16, false },
    .weighted = { 32, 31, -0.9f, 0.05f, 37, false },
    .top = 63,
    .clamps = true,
    .variance_factor = 2,
    .bytes = 176,
    .weigh = weigh_by_mean,
    .put = put_q5_k,
};

void heft_encode_q2_k(uint8_t *out, const float *row, size_t n, const float *importance,
                      const heft_fits *fits)
{
    encode_row(out, &q2_k, row, n, importance, fits);
}

void heft_encode_q4_k(uint8_t *out, const float *row, size_t n, const float *importance,
                      const heft_fits *fits)
{
    encode_row(out, &q4_k, row, n, importance, fits);
}

void heft_encode_q5_k(uint8_t *out, const float *row, size_t n, const float *importance,
                      const heft_fits *fits)
{
    encode_row(out, &q5_k, row, n, importance, fits);
}
