/* encode_fits.c - searches for the scale of a group of elements; ggml's searches, operation by
 * operation, since another order of sums gives other bytes. */
#include "model/encode_fits.h"

#include <string.h>

#include "model/encode_numbers.h"

/* A greatest magnitude below this one means that all elements are zero. */
static const float least_magnitude = 1e-15f;

/* ---- scale and minimum ---- */

typedef struct range {
    float min, max;     /* min is at most 0 */
    float weights, sum; /* of the weights, of the weighted elements */
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

float heft_fit_affine(const heft_affine_fit *f, const float *x, const float *weights,
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
    float most = 0, extreme = 0;
    for (uint32_t i = 0; i < n; i++)
        if (heft_magnitude(x[i]) > most) {
            most = heft_magnitude(x[i]);
            extreme = x[i];
        }
    return most < least_magnitude ? 0 : extreme;
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

float heft_fit_symmetric(uint32_t elements, int32_t half, const float *x, const float *weights,
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
