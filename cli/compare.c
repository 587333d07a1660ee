#include "compare.h"

#include <math.h>
#include <string.h>

#include "model.h"
#include "number_text.h"

/* Update the maxima; return true if a and b differ by more than the tolerance. abs_diff is |a - b|,
 * which is exact for integers even if a and b were rounded to doubles. */
static bool record_difference(difference *d, double abs_diff, double a, double b, tolerance t)
{
    if (isnan(a) && isnan(b))
        return false;
    if (isnan(a) || isnan(b))
        return true;
    double rel = abs_diff == 0 ? 0 : isinf(abs_diff) || b == 0 ? HUGE_VAL : abs_diff / fabs(b);
    d->max_abs = abs_diff > d->max_abs ? abs_diff : d->max_abs;
    d->max_rel = rel > d->max_rel ? rel : d->max_rel;
    return abs_diff > 0 && (isinf(abs_diff) || !(abs_diff <= t.absolute + t.relative * fabs(b)));
}

static bool compare_reals(difference *d, double a, double b, tolerance t)
{
    return a != b && record_difference(d, fabs(a - b), a, b, t);
}

/* Compare 64-bit integers, which a double cannot represent exactly. */
static void compare_integers(difference *d, heft_dtype type, const uint8_t *p, const uint8_t *q,
                             uint64_t count, tolerance t)
{
    bool is_signed = number_kind_of(type) == NUMBER_INT;
    for (uint64_t i = 0; i < count; i++) {
        number a = number_at(type, p, i), b = number_at(type, q, i);
        uint64_t abs_diff = (is_signed ? a.i < b.i : a.u < b.u) ? b.u - a.u : a.u - b.u;
        double x = is_signed ? (double)a.i : (double)a.u, y = is_signed ? (double)b.i : (double)b.u;
        d->differing += record_difference(d, (double)abs_diff, x, y, t);
    }
}

static void compare_numbers(difference *d, heft_dtype type, const uint8_t *a, const uint8_t *b,
                            uint64_t count, tolerance t)
{
    enum { BLOCK = 1024 }; /* doubles; even, since a complex number takes two */
    double x[BLOCK], y[BLOCK];
    size_t numbers_per_element = number_kind_of(type) == NUMBER_COMPLEX ? 2 : 1;
    for (uint64_t at = 0; at < count * numbers_per_element; at += BLOCK) {
        uint64_t left = count * numbers_per_element - at;
        size_t n = left < BLOCK ? (size_t)left : BLOCK;
        if (!heft_dtype_to_f64(x, type, a, at, n) || !heft_dtype_to_f64(y, type, b, at, n))
            return;
        for (size_t i = 0; i < n; i += numbers_per_element) {
            bool other = compare_reals(d, x[i], y[i], t);
            if (numbers_per_element == 2)
                other |= compare_reals(d, x[i + 1], y[i + 1], t);
            d->differing += other;
        }
    }
}

static void compare_chunk(difference *d, heft_dtype type, const uint8_t *a, const uint8_t *b,
                          size_t len, uint64_t count, tolerance t)
{
    if (!memcmp(a, b, len))
        return;
    number_kind kind = number_kind_of(type);
    d->bytewise = d->bytewise || kind == NUMBER_NONE;
    if ((kind == NUMBER_INT || kind == NUMBER_UINT) && heft_dtype_get(type)->block_bytes == 8)
        compare_integers(d, type, a, b, count, t); /* a double has only 53 bits */
    else if (kind == NUMBER_NONE)
        for (size_t i = 0; i < len; i++)
            d->differing += a[i] != b[i];
    /* Compare booleans as numbers: a stored byte other than 0 and 1 differs from 1. */
    else
        compare_numbers(d, type == HEFT_BOOL ? HEFT_U8 : type, a, b, count, t);
}

/* ---- parts and tensors ---- */

static bool compare_streams(difference *d, work *w, chunk_reader *a, chunk_reader *b,
                            heft_dtype type, uint64_t max_elements, tolerance t)
{
    uint64_t elements = type ? elements_in(type, a->length, max_elements) : a->length;
    d->compared += elements;
    for (uint64_t from = 0; from < a->length;) {
        size_t len = chunk_length(from, a->length, type);
        const uint8_t *x = chunk_reader_at(a, w, from, len),
                      *y = x ? chunk_reader_at(b, w, from, len) : NULL;
        if (!y || !work_step(w, len))
            return false;
        uint64_t count = type ? elements_in(type, len, elements) : len;
        compare_chunk(d, type, x, y, len, count, t);
        elements -= count;
        from += len;
    }
    return true;
}

static bool compare_parts(difference *d, work *w, const side *a, const side *b, uint32_t part_a,
                          uint32_t part_b, tolerance t)
{
    chunk_reader x, y = { .buf = NULL };
    heft_dtype type = heft_part_at(a->f, part_a).dtype;
    if (type != heft_part_at(b->f, part_b).dtype)
        type = HEFT_UNTYPED; /* compare untyped bytes with typed data as bytes */
    heft_tensor tensor = heft_tensor_at(a->f, a->tensor);
    /* The last quantised block may hold fewer elements than its capacity. */
    uint64_t max_elements = tensor.layout == HEFT_DENSE ? tensor_elements(&tensor) : UINT64_MAX;
    bool ok = chunk_reader_open(&x, w, a->f, a->path, part_a, a->checks) &&
              chunk_reader_open(&y, w, b->f, b->path, part_b, b->checks) &&
              compare_streams(d, w, &x, &y, type, max_elements, t);
    chunk_reader_close(&x);
    chunk_reader_close(&y);
    return ok;
}

void compare_tensors(difference *d, work *w, const side *a, const side *b, tolerance t)
{
    heft_tensor x = heft_tensor_at(a->f, a->tensor), y = heft_tensor_at(b->f, b->tensor);
    *d = (difference){ .incomparable = x.part_count != y.part_count };
    for (uint32_t i = 0; i < x.part_count && !d->incomparable; i++) {
        heft_part p = heft_part_at(a->f, x.first_part + i);
        uint32_t other = heft_part_find(b->f, b->tensor, p.role);
        heft_part q = other == HEFT_NONE ? p : heft_part_at(b->f, other);
        if (other == HEFT_NONE || q.length != p.length ||
            (q.dtype != p.dtype && q.dtype && p.dtype))
            d->incomparable = true;
        else if (!compare_parts(d, w, a, b, x.first_part + i, other, t))
            return;
    }
}
