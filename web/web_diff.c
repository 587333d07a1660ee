/* web_diff.c - compare runs of elements of two tensors, for `diff()`. */
#include "heft_web.h"

enum { RUN = 1024 }; /* numbers converted at once; even, since complex elements are two numbers */

/* Sums over all runs of a tensor; core.mjs reads the members by their offsets. */
typedef struct difference {
    double differing, compared;
    double first; /* number of the first element that differs, or -1 */
    double max_abs, max_rel;
    double finite, sum_abs, sum_squares, squares_a, squares_b, products;
} difference;

typedef struct number { /* exact: sign, magnitude below 2^64, and fraction; or is_inexact */
    double approximate, fraction;
    uint64_t whole;
    bool is_negative, is_inexact;
} number;

static bool is_finite(double v)
{
    return __builtin_fabs(v) < __builtin_inf();
}

/* ---- 64-bit integers, which a double cannot represent --------------------------------------- */

static bool is_wide(heft_dtype t)
{
    return t == HEFT_I64 || t == HEFT_U64;
}

static number number_at(heft_dtype t, const uint8_t *p, uint32_t i)
{
    number n = { .whole = 0 };
    if (is_wide(t)) {
        memcpy(&n.whole, p + (size_t)i * sizeof n.whole, sizeof n.whole);
        n.is_negative = t == HEFT_I64 && n.whole >> 63;
        n.whole = n.is_negative ? 0 - n.whole : n.whole;
        n.approximate = n.is_negative ? -(double)n.whole : (double)n.whole;
        return n;
    }
    heft_dtype_to_f64(&n.approximate, t, p, i, 1);
    double magnitude = __builtin_fabs(n.approximate);
    n.is_inexact = !(magnitude < 0x1p64);
    n.is_negative = n.approximate < 0;
    n.whole = n.is_inexact ? 0 : (uint64_t)magnitude;
    n.fraction = n.is_inexact ? 0 : magnitude - (double)n.whole;
    return n;
}

static double distance_of(const number *a, const number *b)
{
    if (a->is_inexact || b->is_inexact)
        return __builtin_fabs(a->approximate - b->approximate);
    if (a->is_negative != b->is_negative)
        return (double)a->whole + (double)b->whole + (a->fraction + b->fraction);
    bool a_is_less = a->whole != b->whole ? a->whole < b->whole : a->fraction < b->fraction;
    const number *low = a_is_less ? a : b, *high = a_is_less ? b : a;
    return (double)(high->whole - low->whole) + (high->fraction - low->fraction);
}

/* ---- one pair of numbers -------------------------------------------------------------------- */

/* Update sums and maxima; return whether the numbers differ.  NaN equals NaN only. */
static bool add_pair(difference *d, bool has_statistics, double distance, double a, double b)
{
    if (has_statistics && is_finite(a) && is_finite(b)) {
        d->finite++;
        d->sum_abs += distance;
        d->sum_squares += distance * distance;
        d->squares_a += a * a;
        d->squares_b += b * b;
        d->products += a * b;
    }
    if (a != a || b != b)
        return (a != a) != (b != b);
    if (a == b && !(distance > 0))
        return false;
    double relative = b == 0 || !is_finite(distance) ? __builtin_inf()
                                                     : distance / __builtin_fabs(b);
    d->max_abs = distance > d->max_abs ? distance : d->max_abs;
    d->max_rel = relative > d->max_rel ? relative : d->max_rel;
    return true;
}

static void count(difference *d, bool differs, double element)
{
    d->first = differs && d->differing == 0 ? element : d->first;
    d->differing += differs;
}

/* ---- runs ----------------------------------------------------------------------------------- */

WEB_EXPORT(diff_bytes)
void diff_bytes(difference *d, const uint8_t *a, const uint8_t *b, uint32_t len, double from)
{
    for (uint32_t i = 0; i < len; i++)
        count(d, a[i] != b[i], from + i);
}

WEB_EXPORT(same_bytes) bool same_bytes(const uint8_t *a, const uint8_t *b, uint32_t len)
{
    return !memcmp(a, b, len);
}

static void diff_wide(difference *d, const uint8_t *a, heft_dtype of_a, const uint8_t *b,
                      heft_dtype of_b, uint32_t n, double from, bool has_statistics)
{
    for (uint32_t i = 0; i < n; i++) {
        number x = number_at(of_a, a, i), y = number_at(of_b, b, i);
        double distance = distance_of(&x, &y);
        count(d, add_pair(d, has_statistics, distance, x.approximate, y.approximate), from + i);
    }
}

/* Compare n elements; both sides begin at a block, and `from` is the number of the first one. */
WEB_EXPORT(diff_numbers)
void diff_numbers(difference *d, const uint8_t *a, uint32_t of_a, const uint8_t *b, uint32_t of_b,
                  uint32_t n, double from, bool has_statistics)
{
    double x[RUN], y[RUN];
    uint32_t numbers = heft_dtype_get((heft_dtype)of_a)->kind == HEFT_DTYPE_COMPLEX ? 2 : 1;
    if (is_wide((heft_dtype)of_a) || is_wide((heft_dtype)of_b)) {
        diff_wide(d, a, (heft_dtype)of_a, b, (heft_dtype)of_b, n, from, has_statistics);
        return;
    }
    for (uint32_t at = 0, len; at < n * numbers; at += len) {
        len = n * numbers - at < RUN ? n * numbers - at : RUN;
        if (!heft_dtype_to_f64(x, (heft_dtype)of_a, a, at, len) ||
            !heft_dtype_to_f64(y, (heft_dtype)of_b, b, at, len))
            return;
        for (uint32_t i = 0; i < len; i += numbers) {
            bool differs = false;
            for (uint32_t k = i; k < i + numbers; k++)
                differs |= add_pair(d, has_statistics, __builtin_fabs(x[k] - y[k]), x[k], y[k]);
            count(d, differs, from + (at + i) / numbers);
        }
    }
}
