/* encode_fits.c - searches for the scale of a group of elements; ggml's searches, operation by
 * operation, since another order of sums gives other bytes. */
#include "model/encode_fits.h"

#include <string.h>

#include "base/kernels.h"
#include "model/block_layouts.h"
#include "model/encode_rounding.h"
#include "model/float.h"

/* A greatest magnitude below this one means that all elements are zero. */
static const float least_magnitude = 1e-15f;

/* ---- scale and minimum ---- */

typedef struct range {
    float min, max;     /* min is at most 0 */
    float weights, sum; /* sums of the weights, of the weighted elements */
} range;

typedef struct line {
    float scale, minimum;
} line;

static range range_of(const float *x, const float *weights, uint32_t n)
{
    range r = { x[0], x[0], weights[0], weights[0] * x[0] };
    for (uint32_t i = 1; i < n; i++) {
        r.min = x[i] < r.min ? x[i] : r.min;
        r.max = x[i] > r.max ? x[i] : r.max;
        r.weights += weights[i];
        r.sum += weights[i] * x[i];
    }
    r.min = r.min > 0 ? 0 : r.min;
    return r;
}

static void codes_from(uint8_t *codes, const heft_affine_fit *f, const float *x, float inverse,
                       float minimum)
{
    for (uint32_t i = 0; i < f->elements; i++)
        codes[i] = (uint8_t)heft_clamp(heft_nearest_int(inverse * (x[i] - minimum)), 0, f->top);
}

static float error_of(const heft_affine_fit *f, const float *x, const float *weights, line l,
                      const uint8_t *codes)
{
    float error = 0;
    for (uint32_t i = 0; i < f->elements; i++) {
        float d = l.scale * (float)codes[i] + l.minimum - x[i];
        error += weights[i] * (f->is_absolute ? heft_magnitude(d) : d * d);
    }
    return error;
}

/* Set *l to the line of least squares through the codes; return false if there is none. */
static bool line_through(line *l, const range *r, const float *x, const float *weights,
                         const uint8_t *codes, uint32_t n)
{
    float sum = 0, squares = 0, products = 0;
    for (uint32_t i = 0; i < n; i++) {
        float weighted = weights[i] * (float)codes[i];
        sum += weighted;
        squares += weighted * (float)codes[i];
        products += weighted * x[i];
    }

    float divisor = r->weights * squares - sum * sum;
    if (!(divisor > 0))
        return false;
    l->scale = (r->weights * products - r->sum * sum) / divisor;
    l->minimum = (squares * r->sum - sum * products) / divisor;
    if (l->minimum > 0)
        *l = (line){ products / squares, 0 };
    return true;
}

static float fit_affine(const heft_affine_fit *f, const float *x, const float *weights,
                        float *minimum, uint8_t *codes)
{
    range r = range_of(x, weights, f->elements);
    uint8_t tried[HEFT_FIT_ELEMENTS];
    *minimum = -r.min;
    if (r.max == r.min) {
        memset(codes, 0, f->elements);
        return 0;
    }

    float inverse = (float)f->top / (r.max - r.min);
    line best = { 1 / inverse, r.min };
    codes_from(codes, f, x, inverse, r.min);
    float least = error_of(f, x, weights, best, codes);

    for (int32_t i = 0; i < f->steps; i++) {
        line l;
        /* The range begins at the best minimum so far. */
        inverse = (f->first + f->step * (float)i + (float)f->top) / (r.max - best.minimum);
        codes_from(tried, f, x, inverse, best.minimum);
        if (!line_through(&l, &r, x, weights, tried, f->elements))
            continue;
        float error = error_of(f, x, weights, l, tried);
        if (error < least) {
            least = error;
            best = l;
            memcpy(codes, tried, f->elements);
        }
    }
    *minimum = -best.minimum;
    return best.scale;
}

/* ---- scale ---- */

/* Return the element of the greatest magnitude, the first of several; 0 if all are as good as zero.
 */
static float extreme_of(const float *x, uint32_t n)
{
    float extreme = heft_extreme(x, n);
    return heft_magnitude(extreme) < least_magnitude ? 0 : extreme;
}

typedef struct products {
    float with_codes, squares; /* weighted sums of element * code, code * code */
} products;

static products products_of(int8_t *codes, uint32_t n, int32_t half, const float *x,
                            const float *weights, float inverse)
{
    products p = { 0, 0 };
    for (uint32_t i = 0; i < n; i++) {
        int32_t code = heft_clamp(heft_nearest_int(inverse * x[i]), -half, half - 1);
        float weight = weights ? weights[i] : x[i] * x[i];
        p.with_codes += weight * x[i] * (float)code;
        p.squares += weight * (float)code * (float)code;
        codes[i] = (int8_t)code;
    }
    return p;
}

static float fit_symmetric(uint32_t elements, int32_t half, const float *x, const float *weights,
                           uint8_t *codes)
{
    enum { STEPS = 9 }; /* to either side */
    int8_t best_codes[HEFT_FIT_ELEMENTS], tried[HEFT_FIT_ELEMENTS];
    float extreme = extreme_of(x, elements);
    if (extreme == 0) {
        memset(codes, 0, elements);
        return 0;
    }

    products p = products_of(best_codes, elements, half, x, weights, (float)-half / extreme);
    float scale = p.squares != 0 ? p.with_codes / p.squares : 0, best = scale * p.with_codes;
    for (int32_t i = -STEPS; i <= STEPS; i++) {
        float inverse = -((float)half + 0.1f * (float)i) / extreme;
        p = i ? products_of(tried, elements, half, x, weights, inverse) : p;
        if (i && p.squares > 0 && p.with_codes * p.with_codes > best * p.squares) {
            scale = p.with_codes / p.squares;
            best = scale * p.with_codes;
            memcpy(best_codes, tried, elements);
        }
    }
    for (uint32_t i = 0; i < elements; i++)
        codes[i] = (uint8_t)(best_codes[i] + half);
    return scale;
}

/* ---- scale, and codes one by one ---- */

enum { REFINED = 16, REFINED_HALF = 4 };

/* Change codes to the best ones for the scale that all others lead to; return true if one has
 * changed. */
static bool refine(int32_t *codes, products *p, const float *x)
{
    bool has_changed = false;
    for (uint32_t i = 0; i < REFINED; i++) {
        float weight = x[i] * x[i], code = (float)codes[i];
        float with_codes = p->with_codes - weight * x[i] * code;
        if (!(with_codes > 0))
            continue;
        float squares = p->squares - weight * code * code;
        int32_t better = heft_clamp(heft_nearest_int(x[i] * squares / with_codes), -REFINED_HALF,
                                    REFINED_HALF - 1);
        if (better == codes[i])
            continue;
        with_codes += weight * x[i] * (float)better;
        squares += weight * (float)better * (float)better;
        if (squares > 0 &&
            with_codes * with_codes * p->squares > p->with_codes * p->with_codes * squares) {
            codes[i] = better;
            *p = (products){ with_codes, squares };
            has_changed = true;
        }
    }
    return has_changed;
}

static float fit_refined(const float *x, uint8_t *codes)
{
    enum { ROUNDS = 5 };
    float extreme = extreme_of(x, REFINED);
    int8_t first[REFINED];
    int32_t refined[REFINED];
    if (extreme == 0) {
        memset(codes, 0, REFINED);
        return 0;
    }

    products p = products_of(first, REFINED, REFINED_HALF, x, NULL, (float)-REFINED_HALF / extreme);
    for (uint32_t i = 0; i < REFINED; i++)
        refined[i] = first[i];
    for (uint32_t i = 0; i < ROUNDS && refine(refined, &p, x); i++)
        continue;
    for (uint32_t i = 0; i < REFINED; i++)
        codes[i] = (uint8_t)(refined[i] + REFINED_HALF);
    return p.squares > 0 ? p.with_codes / p.squares : 0;
}

/* ---- scale of the numbers of iq4 ---- */

uint32_t heft_nearest_number(float v)
{
    uint32_t below = 0, above = 15;
    if (v <= (float)iq4_numbers[below])
        return below;
    if (v >= (float)iq4_numbers[above])
        return above;
    while (above - below > 1) {
        uint32_t middle = (below + above) / 2;
        *(v < (float)iq4_numbers[middle] ? &above : &below) = middle;
    }
    return v - (float)iq4_numbers[below] < (float)iq4_numbers[above] - v ? below : above;
}

static products products_of_numbers(const float *x, const float *weights, float inverse)
{
    products p = { 0, 0 };
    for (uint32_t i = 0; i < ELEMENTS32; i++) {
        float number = (float)iq4_numbers[heft_nearest_number(inverse * x[i])];
        p.with_codes += weights[i] * number * x[i];
        p.squares += weights[i] * number * number;
    }
    return p;
}

static float fit_numbers(const float *x, const float *weights)
{
    enum { STEPS = 7 }; /* to either side */
    const float first = iq4_numbers[0];
    float extreme = extreme_of(x, ELEMENTS32);
    if (extreme == 0)
        return 0;

    products p = products_of_numbers(x, weights, 1 / (-extreme / first));
    float scale = p.squares > 0 ? p.with_codes / p.squares : 0, best = scale * p.with_codes;
    for (int32_t i = -STEPS; i <= STEPS; i++) {
        p = products_of_numbers(x, weights, ((float)i + first) / extreme);
        if (p.squares > 0 && p.with_codes * p.with_codes > best * p.squares) {
            scale = p.with_codes / p.squares;
            best = scale * p.with_codes;
        }
    }
    return scale;
}

/* ---- scale of numbers that are not negative ---- */

static float error_of_positive(uint32_t n, int32_t top, const float *x, const float *weights,
                               float inverse)
{
    float error = 0, scale = 1 / inverse;
    for (uint32_t i = 0; i < n; i++) {
        int32_t code = heft_nearest_int(inverse * x[i]);
        float d = x[i] - scale * (float)(code < top ? code : top);
        error += weights[i] * d * d;
    }
    return error;
}

/* Change codes as refine() does. */
static bool refine_positive(uint8_t *codes, products *p, uint32_t n, int32_t top, const float *x,
                            const float *weights)
{
    bool has_changed = false;
    for (uint32_t i = 0; i < n; i++) {
        float code = (float)codes[i];
        float with_codes = p->with_codes - weights[i] * x[i] * code;
        float squares = p->squares - weights[i] * code * code;
        if (!(with_codes > 0 && squares > 0))
            continue;
        int32_t better = heft_nearest_int(x[i] * squares / with_codes);
        better = better < top ? better : top;
        if (better == codes[i])
            continue;
        with_codes += weights[i] * x[i] * (float)better;
        squares += weights[i] * (float)better * (float)better;
        if (with_codes * with_codes * p->squares > p->with_codes * p->with_codes * squares) {
            codes[i] = (uint8_t)better;
            *p = (products){ with_codes, squares };
            has_changed = true;
        }
    }
    return has_changed;
}

float heft_fit_positive(uint32_t n, int32_t top, const float *x, const float *weights,
                        uint8_t *codes)
{
    enum { STEPS = 4 /* to either side */, ROUNDS = 5 };
    float max = 0;
    for (uint32_t i = 0; i < n; i++)
        max = max > x[i] ? max : x[i];
    if (max < least_magnitude) {
        memset(codes, 0, n);
        return 0;
    }

    float inverse = (float)top / max, least = error_of_positive(n, INT32_MAX, x, weights, inverse);
    for (int32_t i = -STEPS; i <= STEPS; i++) {
        float tried = (0.1f * (float)i + (float)top) / max;
        float error = i ? error_of_positive(n, top, x, weights, tried) : least;
        if (error < least) {
            least = error;
            inverse = tried;
        }
    }

    products p = { 0, 0 };
    for (uint32_t i = 0; i < n; i++) {
        int32_t code = heft_nearest_int(inverse * x[i]);
        code = code < top ? code : top;
        codes[i] = (uint8_t)code;
        p.with_codes += weights[i] * x[i] * (float)code;
        p.squares += weights[i] * (float)code * (float)code;
    }
    for (uint32_t i = 0; i < ROUNDS && refine_positive(codes, &p, n, top, x, weights); i++)
        continue;
    return p.squares > 0 ? p.with_codes / p.squares : 0;
}

/* ---- all groups ---- */

static void affine(const heft_affine_fit *f, size_t groups, const float *x, const float *weights,
                   float *scales, float *minima, uint8_t *codes)
{
    for (size_t g = 0, at = 0; g < groups; g++, at += f->elements)
        scales[g] = fit_affine(f, x + at, weights + at, &minima[g], codes + at);
}

static void symmetric(uint32_t elements, int32_t half, size_t groups, const float *x,
                      const float *weights, float *scales, uint8_t *codes)
{
    for (size_t g = 0, at = 0; g < groups; g++, at += elements)
        scales[g] = fit_symmetric(elements, half, x + at, weights ? weights + at : NULL,
                                  codes + at);
}

static void refined(size_t groups, const float *x, float *scales, uint8_t *codes)
{
    for (size_t g = 0; g < groups; g++)
        scales[g] = fit_refined(x + REFINED * g, codes + REFINED * g);
}

static void numbers(size_t groups, const float *x, const float *weights, float *scales)
{
    for (size_t g = 0; g < groups; g++)
        scales[g] = fit_numbers(x + ELEMENTS32 * g, weights + ELEMENTS32 * g);
}

static void weigh(float *weights, const float *x, const float *importance, size_t n, float variance)
{
    for (size_t i = 0; i < n; i++)
        weights[i] = importance[i] * heft_square_root(variance + x[i] * x[i]);
}

static void codes_of(uint8_t *codes, const float *x, size_t n, float minimum, float scale,
                     int32_t least, int32_t top)
{
    for (size_t i = 0; i < n; i++)
        codes[i] =
            (uint8_t)(heft_clamp(heft_nearest_int((x[i] + minimum) / scale), least, top) - least);
}

static size_t no_blocks(uint8_t *out, heft_dtype to, const float *x, size_t n)
{
    (void)out, (void)to, (void)x, (void)n;
    return 0;
}

const heft_fits heft_portable_fits = { affine, symmetric, refined,  numbers,
                                       weigh,  codes_of,  no_blocks };

const heft_fits *heft_fits_now(void)
{
    const heft_kernels *k = heft_kernels_now();
    return k && k->fits ? k->fits : &heft_portable_fits;
}

float heft_sum_of_squares(const float *x, size_t n)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}
