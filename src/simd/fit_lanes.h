/* fit_lanes.h - the searches of model/encode_fits.c over LANES groups at a time: lane k of vector i
 * is element i of group k, so that each sum has the order of the portable form.
 *
 * Each instruction set has a file that includes this header after it has defined
 *
 *   lanes, LANES     a vector of LANES numbers of f32
 *   lane_ints        a vector of as many 32-bit integers
 *   lane_mask        the result of a comparison; masks are combined with & and |
 *   is_less          compare each lane; false if one is NaN
 *   pick             take lanes of the first vector where a mask is true, of the second elsewhere
 *   mask_bits        bit k is lane k of a mask
 *   least_of, most_of
 *                    the lesser or the greater of two lanes; the second if they are equal
 *   least_lane, most_lane
 *                    the least and the greatest of the lanes; zeros of any sign, no NaN
 *   turn_square      exchange lane k of vector i with lane i of vector k, of LANES vectors
 *
 * Groups with NaN, infinity or numbers that no code is near to are left to the portable form. */
#ifndef HEFT_FIT_LANES_H
#define HEFT_FIT_LANES_H
#include <string.h>

#include "model/block_layouts.h"
#include "model/encode_fits.h"

typedef uint8_t lane_bytes __attribute__((vector_size(LANES)));

typedef struct lane_groups {
    lanes x[HEFT_FIT_ELEMENTS], weights[HEFT_FIT_ELEMENTS];
    lanes strange; /* 0 in lanes with finite numbers */
} lane_groups;

static inline lanes splat(float v)
{
    return (lanes){ 0 } + v;
}

static inline lanes magnitude(lanes v)
{
    return (lanes)((lane_ints)v & 0x7FFFFFFF);
}

/* Round as heft_nearest_int() does; numbers must be below 2^22. */
static inline lanes nearest(lanes v)
{
    const lanes shift = splat(12582912.0f);
    return v + shift - shift;
}

static inline lanes clamped(lanes v, float least, float most)
{
    return least_of(most_of(v, splat(least)), splat(most));
}

static inline void transpose(lanes *restrict to, const float *restrict from, uint32_t n,
                             size_t groups)
{
    for (uint32_t i = 0; i < n; i += LANES, to += LANES) {
        for (size_t k = 0; k < LANES; k++) /* lanes without a group repeat the first */
            memcpy(&to[k], from + (k < groups ? k : 0) * n + i, sizeof *to);
        turn_square(to);
    }
}

/* Load up to LANES groups; without weights, elements weigh their squares. */
static inline void load_groups(lane_groups *g, uint32_t n, size_t groups, const float *x,
                               const float *weights)
{
    g->strange = splat(0);
    transpose(g->x, x, n, groups);
    if (weights)
        transpose(g->weights, weights, n, groups);
    for (uint32_t i = 0; i < n; i++) {
        if (!weights)
            g->weights[i] = g->x[i] * g->x[i];
        g->strange += (g->x[i] - g->x[i]) + (g->weights[i] - g->weights[i]);
    }
}

static inline void store_codes(uint8_t *codes, const lanes *c, uint32_t n, size_t groups)
{
    for (uint32_t i = 0; i < n; i += LANES) {
        lanes square[LANES];
        memcpy(square, c + i, sizeof square);
        turn_square(square);
        for (size_t k = 0; k < groups; k++) {
            lane_ints whole = __builtin_convertvector(square[k], lane_ints);
            lane_bytes bytes = __builtin_convertvector(whole, lane_bytes);
            memcpy(codes + k * n + i, &bytes, sizeof bytes);
        }
    }
}

static inline void store_lanes(float *to, lanes v, size_t groups)
{
    memcpy(to, &v, groups * sizeof *to);
}

/* Return the lanes that the portable form must do: those where v is not below `most`. */
static inline uint32_t not_below(lanes v, float most)
{
    return ~mask_bits(is_less(v, splat(most))) & (uint32_t)((UINT64_C(1) << LANES) - 1);
}

/* ---- scale and minimum ---- */

typedef struct lane_line {
    lanes scale, minimum;
    lanes inverse, from; /* codes are nearest(inverse * (x - from)) */
} lane_line;

static inline lanes code_of(lanes x, const lane_line *l, float top)
{
    return clamped(nearest(l->inverse * (x - l->from)), 0, top);
}

static inline lanes error_of_line(const lane_groups *g, const lane_line *l, const lanes *codes,
                                  uint32_t n, bool is_absolute)
{
    lanes error = splat(0);
    for (uint32_t i = 0; i < n; i++) {
        lanes d = l->scale * codes[i] + l->minimum - g->x[i];
        error += g->weights[i] * (is_absolute ? magnitude(d) : d * d);
    }
    return error;
}

static inline uint32_t affine_lanes(const heft_affine_fit *f, const uint32_t n,
                                    const bool is_absolute, const lane_groups *g, lane_line *best)
{
    const lanes zero = splat(0);
    const float top = (float)f->top;
    lanes codes[HEFT_FIT_ELEMENTS], bound = zero;
    lanes min = g->x[0], max = g->x[0], weights = g->weights[0], sum = g->weights[0] * g->x[0];
    for (uint32_t i = 1; i < n; i++) {
        min = least_of(g->x[i], min);
        max = most_of(g->x[i], max);
        weights += g->weights[i];
        sum += g->weights[i] * g->x[i];
    }
    min = pick(is_less(zero, min), zero, min);

    lane_line l = { .inverse = splat(top) / (max - min), .from = min, .minimum = min };
    l.scale = splat(1) / l.inverse;
    bound += magnitude(l.inverse) * (max - min);
    for (uint32_t i = 0; i < n; i++)
        codes[i] = code_of(g->x[i], &l, top);
    lanes least = error_of_line(g, &l, codes, n, is_absolute);
    *best = l;

    for (int32_t step = 0; step < f->steps; step++) {
        lanes codes_sum = zero, squares = zero, products = zero;
        l.from = best->minimum;
        l.inverse = splat(f->first + f->step * (float)step + top) / (max - l.from);
        bound += magnitude(l.inverse) * most_of(magnitude(max - l.from), magnitude(min - l.from));
        for (uint32_t i = 0; i < n; i++) {
            codes[i] = code_of(g->x[i], &l, top);
            lanes weighted = g->weights[i] * codes[i];
            codes_sum += weighted;
            squares += weighted * codes[i];
            products += weighted * g->x[i];
        }

        lanes divisor = weights * squares - codes_sum * codes_sum;
        l.scale = (weights * products - sum * codes_sum) / divisor;
        l.minimum = (squares * sum - codes_sum * products) / divisor;
        lane_mask above = is_less(zero, l.minimum);
        l.scale = pick(above, products / squares, l.scale);
        l.minimum = pick(above, zero, l.minimum);

        lanes error = error_of_line(g, &l, codes, n, is_absolute);
        lane_mask better = is_less(zero, divisor) & is_less(error, least);
        least = pick(better, error, least);
        best->scale = pick(better, l.scale, best->scale);
        best->minimum = pick(better, l.minimum, best->minimum);
        best->inverse = pick(better, l.inverse, best->inverse);
        best->from = pick(better, l.from, best->from);
    }
    return not_below(bound + g->strange, 1 << 20);
}

static void affine(const heft_affine_fit *f, size_t groups, const float *x, const float *weights,
                   float *scales, float *minima, uint8_t *codes)
{
    const uint32_t n = f->elements;
    for (size_t at = 0, m; at < groups; at += m) {
        lane_groups g;
        lane_line best;
        lanes c[HEFT_FIT_ELEMENTS];
        m = groups - at < LANES ? groups - at : LANES;
        load_groups(&g, n, m, x + at * n, weights + at * n);
        uint32_t left = f->is_absolute ? affine_lanes(f, 16, true, &g, &best)
                        : n == 16      ? affine_lanes(f, 16, false, &g, &best)
                                       : affine_lanes(f, 32, false, &g, &best);
        for (uint32_t i = 0; i < n; i++)
            c[i] = code_of(g.x[i], &best, (float)f->top);

        store_lanes(scales + at, best.scale, m);
        store_lanes(minima + at, -best.minimum, m);
        store_codes(codes + at * n, c, n, m);
        for (size_t k = at; k < at + m; k++)
            if (left >> (k - at) & 1)
                heft_portable_fits.affine(f, 1, x + k * n, weights + k * n, scales + k, minima + k,
                                          codes + k * n);
    }
}

/* ---- scale ---- */

static inline lanes extreme_of(const lanes *x, uint32_t n)
{
    lanes most = splat(0), extreme = splat(0);
    for (uint32_t i = 0; i < n; i++) {
        lane_mask more = is_less(most, magnitude(x[i]));
        most = pick(more, magnitude(x[i]), most);
        extreme = pick(more, x[i], extreme);
    }
    return extreme;
}

/* Return the lanes with elements that are as good as zero. */
static inline uint32_t zero_lanes(lanes extreme)
{
    return mask_bits(is_less(magnitude(extreme), splat(1e-15f)));
}

typedef struct lane_products {
    lanes with_codes, squares;
} lane_products;

static inline lane_products products_of(const lane_groups *g, const lanes *weighted, uint32_t n,
                                        float half, lanes inverse)
{
    lane_products p = { splat(0), splat(0) };
    for (uint32_t i = 0; i < n; i++) {
        lanes code = clamped(nearest(inverse * g->x[i]), -half, half - 1);
        p.with_codes += weighted[i] * code;
        p.squares += g->weights[i] * code * code;
    }
    return p;
}

static inline lanes better_scale(lane_products p, lanes *scale, lanes *best, lanes inverse,
                                 lanes best_inverse)
{
    lane_mask better = is_less(splat(0), p.squares) &
                       is_less(*best * p.squares, p.with_codes * p.with_codes);
    lanes tried = p.with_codes / p.squares;
    *scale = pick(better, tried, *scale);
    *best = pick(better, tried * p.with_codes, *best);
    return pick(better, inverse, best_inverse);
}

/* Set the scale, and codes as numbers from 0. */
static inline uint32_t symmetric_lanes(const uint32_t n, float half, const lane_groups *g,
                                       lanes *scale, lanes *codes)
{
    enum { STEPS = 9 };
    lanes weighted[HEFT_FIT_ELEMENTS], extreme = extreme_of(g->x, n);
    for (uint32_t i = 0; i < n; i++)
        weighted[i] = g->weights[i] * g->x[i];

    lanes best_inverse = splat(-half) / extreme;
    lane_products p = products_of(g, weighted, n, half, best_inverse);
    *scale = pick(is_less(splat(0), p.squares), p.with_codes / p.squares, splat(0));
    lanes best = *scale * p.with_codes;
    for (int32_t i = -STEPS; i <= STEPS; i++) {
        if (i == 0)
            continue;
        lanes inverse = splat(-(half + 0.1f * (float)i)) / extreme;
        p = products_of(g, weighted, n, half, inverse);
        best_inverse = better_scale(p, scale, &best, inverse, best_inverse);
    }
    for (uint32_t i = 0; i < n; i++)
        codes[i] = clamped(nearest(best_inverse * g->x[i]), -half, half - 1) + half;
    return not_below(g->strange, 1) | zero_lanes(extreme);
}

static void symmetric(uint32_t elements, int32_t half, size_t groups, const float *x,
                      const float *weights, float *scales, uint8_t *codes)
{
    const uint32_t n = elements;
    for (size_t at = 0, m; at < groups; at += m) {
        lane_groups g;
        lanes scale, c[HEFT_FIT_ELEMENTS];
        m = groups - at < LANES ? groups - at : LANES;
        load_groups(&g, n, m, x + at * n, weights ? weights + at * n : NULL);
        uint32_t left = n == 16 ? symmetric_lanes(16, (float)half, &g, &scale, c)
                                : symmetric_lanes(32, (float)half, &g, &scale, c);
        store_lanes(scales + at, scale, m);
        store_codes(codes + at * n, c, n, m);
        for (size_t k = at; k < at + m; k++)
            if (left >> (k - at) & 1)
                heft_portable_fits.symmetric(n, half, 1, x + k * n,
                                             weights ? weights + k * n : NULL, scales + k,
                                             codes + k * n);
    }
}

/* ---- scale, and codes one by one ---- */

enum { REFINED = 16, REFINED_HALF = 4 };

typedef struct lane_refined {
    lane_groups g;
    lanes weighted[REFINED], codes[REFINED], extreme;
    lane_products p;
    lanes quotients;   /* the sum of magnitudes, which must not be too large for nearest() */
    lanes has_changed; /* 1 in lanes where the round changes a code */
} lane_refined;

static inline void begin_refined(lane_refined *r, size_t groups, const float *x)
{
    const float half = REFINED_HALF;
    load_groups(&r->g, REFINED, groups, x, NULL);
    r->extreme = extreme_of(r->g.x, REFINED);
    r->p = (lane_products){ splat(0), splat(0) };
    r->quotients = r->has_changed = splat(0);
    lanes inverse = splat(-half) / r->extreme;
    for (uint32_t i = 0; i < REFINED; i++) {
        r->weighted[i] = r->g.weights[i] * r->g.x[i];
        r->codes[i] = clamped(nearest(inverse * r->g.x[i]), -half, half - 1);
        r->p.with_codes += r->weighted[i] * r->codes[i];
        r->p.squares += r->g.weights[i] * r->codes[i] * r->codes[i];
    }
}

static inline void refine_code(lane_refined *r, uint32_t i)
{
    const lanes zero = splat(0), x = r->g.x[i], weight = r->g.weights[i], code = r->codes[i];
    lane_products old = r->p;
    lanes with_codes = old.with_codes - r->weighted[i] * code;
    lanes squares = old.squares - weight * code * code;
    lane_mask is_positive = is_less(zero, with_codes);
    lanes quotient = x * squares / with_codes;
    r->quotients += pick(is_positive, magnitude(quotient), zero);
    lanes better = clamped(nearest(quotient), -REFINED_HALF, REFINED_HALF - 1);
    with_codes += r->weighted[i] * better;
    squares += weight * better * better;
    lane_mask takes = is_positive & is_less(zero, squares) &
                      is_less(old.with_codes * old.with_codes * squares,
                              with_codes * with_codes * old.squares) &
                      is_less(zero, magnitude(better - code));
    r->codes[i] = pick(takes, better, code);
    r->p.with_codes = pick(takes, with_codes, old.with_codes);
    r->p.squares = pick(takes, squares, old.squares);
    r->has_changed = pick(takes, splat(1), r->has_changed);
}

static inline void end_refined(const lane_refined *r, size_t groups, const float *x, float *scales,
                               uint8_t *codes)
{
    lanes c[REFINED];
    lanes scale = pick(is_less(splat(0), r->p.squares), r->p.with_codes / r->p.squares, splat(0));
    const float large = 1 << 20;
    uint32_t left = not_below(r->g.strange, 1) | zero_lanes(r->extreme) |
                    not_below(r->quotients, large);
    for (uint32_t i = 0; i < REFINED; i++)
        c[i] = r->codes[i] + REFINED_HALF;
    store_lanes(scales, scale, groups);
    store_codes(codes, c, REFINED, groups);
    for (size_t k = 0; k < groups; k++)
        if (left >> k & 1)
            heft_portable_fits.refined(1, x + k * REFINED, scales + k, codes + k * REFINED);
}

enum { VECTORS = 4, SOME = VECTORS * LANES };

/* Refine up to SOME groups, in several vectors because each step waits for the one before.  Return
 * the groups that the last round has changed. */
static uint64_t refine_some(size_t groups, uint32_t rounds, const float *x, float *scales,
                            uint8_t *codes)
{
    lane_refined r[VECTORS];
    uint64_t changed = 1;
    const size_t last = (groups - 1) / LANES, of_last = groups - last * LANES;
    for (size_t v = 0; v <= last; v++)
        begin_refined(&r[v], v < last ? LANES : of_last, x + v * LANES * REFINED);

    for (uint32_t round = 0; round < rounds && changed; round++) {
        for (uint32_t i = 0; i < REFINED; i++)
            for (size_t v = 0; v <= last; v++)
                refine_code(&r[v], i);
        changed = 0;
        for (size_t v = 0; v <= last; v++) {
            changed |= (uint64_t)not_below(r[v].has_changed, 1) << v * LANES;
            r[v].has_changed = splat(0);
        }
    }

    for (size_t v = 0; v <= last; v++)
        end_refined(&r[v], v < last ? LANES : of_last, x + v * LANES * REFINED, scales + v * LANES,
                    codes + v * LANES * REFINED);
    return groups < 64 ? changed & ((UINT64_C(1) << groups) - 1) : changed;
}

/* Refine the groups with these numbers from the beginning. */
static void refine_again(const uint32_t *numbers, size_t groups, const float *x, float *scales,
                         uint8_t *codes)
{
    enum { ROUNDS = 5 };
    float copy[SOME * REFINED], own_scales[SOME];
    uint8_t own_codes[SOME * REFINED];
    for (size_t k = 0; k < groups; k++)
        memcpy(copy + k * REFINED, x + numbers[k] * REFINED, REFINED * sizeof *x);
    (void)refine_some(groups, ROUNDS, copy, own_scales, own_codes);
    for (size_t k = 0; k < groups; k++) {
        scales[numbers[k]] = own_scales[k];
        memcpy(codes + numbers[k] * REFINED, own_codes + k * REFINED, REFINED);
    }
}

/* Four of five groups of ordinary weights change in no round: the others, together, go on. */
static void refined(size_t groups, const float *x, float *scales, uint8_t *codes)
{
    uint32_t again[2 * SOME];
    size_t left = 0;
    for (size_t at = 0, m; at < groups; at += m) {
        m = groups - at < SOME ? groups - at : SOME;
        uint64_t changed = refine_some(m, 1, x + at * REFINED, scales + at, codes + at * REFINED);
        for (size_t k = 0; k < m; k++)
            if (changed >> k & 1)
                again[left++] = (uint32_t)(at + k);
        bool is_last = at + m == groups;
        for (size_t n; left >= SOME || (is_last && left); left -= n) {
            n = left < SOME ? left : SOME;
            refine_again(again + left - n, n, x, scales, codes);
        }
    }
}

/* ---- scale of the numbers of iq4 ---- */

static inline lane_products products_of_numbers(const lane_groups *g, lanes inverse)
{
    lane_products p = { splat(0), splat(0) };
    for (uint32_t i = 0; i < ELEMENTS32; i++) {
        lanes v = inverse * g->x[i], number = splat(iq4_numbers[0]);
        /* Half-way between two numbers, exact in f32, the upper one is nearer. */
        for (uint32_t k = 1; k < 16; k++) {
            float middle = (float)(iq4_numbers[k - 1] + iq4_numbers[k]) / 2;
            number = pick(is_less(v, splat(middle)), number, splat(iq4_numbers[k]));
        }
        lanes weighted = g->weights[i] * number;
        p.with_codes += weighted * g->x[i];
        p.squares += weighted * number;
    }
    return p;
}

static uint32_t numbers_lanes(const lane_groups *g, lanes *scale)
{
    enum { STEPS = 7 };
    const float first = iq4_numbers[0];
    lanes extreme = extreme_of(g->x, ELEMENTS32), unused = splat(0);
    lane_products p = products_of_numbers(g, splat(1) / (-extreme / first));
    *scale = pick(is_less(splat(0), p.squares), p.with_codes / p.squares, splat(0));
    lanes best = *scale * p.with_codes;
    for (int32_t i = -STEPS; i <= STEPS; i++) {
        p = products_of_numbers(g, splat((float)i + first) / extreme);
        unused = better_scale(p, scale, &best, unused, unused);
    }
    return not_below(g->strange, 1) | zero_lanes(extreme);
}

static void numbers(size_t groups, const float *x, const float *weights, float *scales)
{
    for (size_t at = 0, m; at < groups; at += m) {
        lane_groups g;
        lanes scale;
        m = groups - at < LANES ? groups - at : LANES;
        load_groups(&g, ELEMENTS32, m, x + at * ELEMENTS32, weights + at * ELEMENTS32);
        uint32_t left = numbers_lanes(&g, &scale);
        store_lanes(scales + at, scale, m);
        for (size_t k = at; k < at + m; k++)
            if (left >> (k - at) & 1)
                heft_portable_fits.numbers(1, x + k * ELEMENTS32, weights + k * ELEMENTS32,
                                           scales + k);
    }
}

#endif
