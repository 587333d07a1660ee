/* compare.c - values are compared in steps of some elements, as doubles. 64-bit integers, which a
 * double cannot represent, are compared as integers. */
#include "values/compare.h"

#include <math.h>
#include <string.h>

#include "models/model.h"
#include "text/number_text.h"

enum {
    STEP = 1 << 16
}; /* STEP elements are whole blocks of every type and at most WORK_CHUNK bytes. */

typedef struct streams { /* two parts that are read together */
    chunk_reader a, b;
    heft_dtype type_a, type_b;
    uint64_t elements; /* number in either part; bytes if the types hold no numbers */
    bool is_bytewise, has_statistics, is_again; /* is_again: progress was reported */
    tolerance t;
} streams;

/* ---- spacing ---- */

static const struct float_type {
    heft_dtype type;
    int mantissa, min_exponent;
} float_types[] = {
    { HEFT_F64, 52, -1022 },      { HEFT_C128, 52, -1022 },  { HEFT_F32, 23, -126 },
    { HEFT_C64, 23, -126 },       { HEFT_F16, 10, -14 },     { HEFT_BF16, 7, -126 },
    { HEFT_F8_E4M3FN, 3, -6 },    { HEFT_F8_E5M2, 2, -14 },  { HEFT_F8_E4M3FNUZ, 3, -7 },
    { HEFT_F8_E5M2FNUZ, 2, -15 }, { HEFT_F8_E8M0, 0, -127 }, { HEFT_F4_E2M1, 1, 0 },
};

/* Return the distance between neighbouring numbers of the type near x. 0 for block types, whose
 * spacing depends on the scale of the block. */
static double spacing(heft_dtype type, double x)
{
    number_kind kind = number_kind_of(type);
    if (kind == NUMBER_INT || kind == NUMBER_UINT || kind == NUMBER_BOOL)
        return 1;
    for (size_t i = 0; i < sizeof float_types / sizeof *float_types; i++) {
        const struct float_type *f = &float_types[i];
        int exponent = f->min_exponent;
        if (f->type != type)
            continue;
        if (x != 0 && ilogb(x) > exponent)
            exponent = ilogb(x);
        return ldexp(1, exponent - f->mantissa);
    }
    return 0;
}

static bool is_within_ulps(const streams *s, double abs_diff, double a, double b)
{
    double larger = fabs(a) > fabs(b) ? a : b;
    double of_a = spacing(s->type_a, larger), of_b = spacing(s->type_b, larger);
    return abs_diff <= (double)s->t.ulp * (of_a > of_b ? of_a : of_b);
}

/* ---- one pair of numbers ---- */

/* Update the maxima for numbers that differ; return true if a and b differ by more than the
 * tolerance. abs_diff is |a - b|, which is exact, and not 0, even if integers were rounded to
 * doubles. */
static bool record_difference(difference *d, const streams *s, double abs_diff, double a, double b)
{
    if (isnan(a) && isnan(b))
        return false;
    if (isnan(a) || isnan(b))
        return true;
    double rel = isinf(abs_diff) || b == 0 ? HUGE_VAL : abs_diff / fabs(b);
    d->max_abs = abs_diff > d->max_abs ? abs_diff : d->max_abs;
    d->max_rel = rel > d->max_rel ? rel : d->max_rel;
    if (isinf(abs_diff))
        return true;
    bool is_close = abs_diff <= s->t.absolute + s->t.relative * fabs(b);
    return !is_close && !(s->t.ulp && is_within_ulps(s, abs_diff, a, b));
}

static bool compare_pair(difference *d, const streams *s, bool is_equal, double abs_diff, double a,
                         double b)
{
    if (s->has_statistics && isfinite(a) && isfinite(b)) {
        d->finite++;
        d->sum_abs += abs_diff;
        d->sum_squares += abs_diff * abs_diff;
        d->squares_a += a * a;
        d->squares_b += b * b;
        d->products += a * b;
    }
    return !is_equal && record_difference(d, s, abs_diff, a, b);
}

/* ---- 64-bit integers ---- */

typedef struct exact { /* sign, and magnitude below 2^64 */
    bool is_negative;
    uint64_t whole;
    double fraction;
} exact;

static double to_double(const number *n)
{
    return n->kind == NUMBER_REAL ? n->f : n->kind == NUMBER_INT ? (double)n->i : (double)n->u;
}

/* Return false for NaN, and for numbers of 2^64 or more. */
static bool to_exact(exact *e, const number *n)
{
    *e = (exact){ .whole = n->u };
    if (n->kind == NUMBER_INT) {
        e->is_negative = n->i < 0;
        e->whole = e->is_negative ? 0 - (uint64_t)n->i : (uint64_t)n->i;
    } else if (n->kind == NUMBER_REAL) {
        double magnitude = fabs(n->f);
        if (!(magnitude < 0x1p64))
            return false;
        e->is_negative = n->f < 0;
        e->whole = (uint64_t)magnitude;
        e->fraction = magnitude - (double)e->whole;
    }
    return true;
}

/* Return |a - b|, which is 0 only for equal numbers. */
static double exact_distance(const number *a, const number *b)
{
    exact x, y;
    if (!to_exact(&x, a) || !to_exact(&y, b))
        return fabs(to_double(a) - to_double(b));
    if (x.is_negative != y.is_negative)
        return ((double)x.whole + (double)y.whole) + (x.fraction + y.fraction);
    bool is_less = x.whole != y.whole ? x.whole < y.whole : x.fraction < y.fraction;
    exact more = is_less ? y : x, less = is_less ? x : y;
    return (double)(more.whole - less.whole) + (more.fraction - less.fraction);
}

static bool is_wide(heft_dtype t)
{
    number_kind kind = number_kind_of(t);
    const heft_dtype_info *d = heft_dtype_get(t);
    return (kind == NUMBER_INT || kind == NUMBER_UINT) && d->block_bytes == 8;
}

/* ---- runs of elements ---- */

static void count_difference(difference *d, bool differs, uint64_t index)
{
    if (differs && !d->differing)
        d->first = index;
    d->differing += differs;
}

static void compare_exactly(difference *d, const streams *s, const uint8_t *p, const uint8_t *q,
                            uint64_t from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        number a = number_at(s->type_a, p, i), b = number_at(s->type_b, q, i);
        double distance = exact_distance(&a, &b), x = to_double(&a), y = to_double(&b);
        count_difference(d, compare_pair(d, s, distance == 0, distance, x, y), from + i);
    }
}

static void compare_doubles(difference *d, const streams *s, const uint8_t *p, const uint8_t *q,
                            uint64_t from, uint64_t n)
{
    enum { BLOCK = 1024 }; /* doubles; even, since a complex number takes two */
    double x[BLOCK], y[BLOCK];
    size_t per_element = number_kind_of(s->type_a) == NUMBER_COMPLEX ? 2 : 1;
    for (uint64_t at = 0; at < n * per_element; at += BLOCK) {
        uint64_t left = n * per_element - at;
        size_t len = left < BLOCK ? (size_t)left : BLOCK;
        if (!heft_dtype_to_f64(x, s->type_a, p, at, len) ||
            !heft_dtype_to_f64(y, s->type_b, q, at, len))
            return;
        for (size_t i = 0; i < len; i += per_element) {
            bool differs = false;
            for (size_t k = i; k < i + per_element; k++)
                differs |= compare_pair(d, s, x[k] == y[k], fabs(x[k] - y[k]), x[k], y[k]);
            count_difference(d, differs, from + (at + i) / per_element);
        }
    }
}

static void compare_bytes(difference *d, const uint8_t *p, const uint8_t *q, uint64_t from,
                          uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        count_difference(d, p[i] != q[i], from + i);
}

/* ---- parts ---- */

/* Return the bytes of n elements from the beginning of a part, at most those of the part. */
static size_t bytes_of(const streams *s, heft_dtype type, uint64_t left, uint64_t n)
{
    const heft_dtype_info *d = heft_dtype_get(type);
    uint64_t elems = s->is_bytewise ? 1 : d->block_elems;
    uint64_t bytes = (n + elems - 1) / elems * (s->is_bytewise ? 1 : d->block_bytes);
    return (size_t)(bytes < left ? bytes : left);
}

/* Read both parts from the beginning, and call on_step for each run of elements. Return false on
 * failure. */
static bool walk(streams *s, difference *d, work *w,
                 void (*on_step)(difference *d, const streams *s, const uint8_t *p,
                                 const uint8_t *q, size_t len_a, uint64_t from, uint64_t n))
{
    uint64_t at_a = 0, at_b = 0;
    for (uint64_t from = 0; from < s->elements; from += STEP) {
        uint64_t n = s->elements - from < STEP ? s->elements - from : STEP;
        size_t len_a = bytes_of(s, s->type_a, s->a.length - at_a, n);
        size_t len_b = bytes_of(s, s->type_b, s->b.length - at_b, n);
        const uint8_t *p = chunk_reader_at(&s->a, w, at_a, len_a);
        const uint8_t *q = p ? chunk_reader_at(&s->b, w, at_b, len_b) : NULL;
        if (!q || !work_step(w, s->is_again ? 0 : len_a))
            return false;
        on_step(d, s, p, q, len_a, from, n);
        at_a += len_a;
        at_b += len_b;
    }
    return true;
}

static void count_step(difference *d, const streams *s, const uint8_t *p, const uint8_t *q,
                       size_t len_a, uint64_t from, uint64_t n)
{
    (void)len_a;
    if (s->is_bytewise)
        compare_bytes(d, p, q, from, n);
    else if (is_wide(s->type_a) || is_wide(s->type_b))
        compare_exactly(d, s, p, q, from, n);
    else
        compare_doubles(d, s, p, q, from, n);
}

/* Compare as bytes. A wrong digest is found at the end of a part: read on after a difference. */
static void memcmp_step(difference *d, const streams *s, const uint8_t *p, const uint8_t *q,
                        size_t len_a, uint64_t from, uint64_t n)
{
    (void)s;
    (void)from;
    (void)n;
    if (!d->differing && memcmp(p, q, len_a) != 0)
        d->differing = 1;
}

/* Parts of one type are compared as bytes first, because most are equal: only those with
 * differences are read again for the statistics. */
static bool compare_streams(difference *d, work *w, streams *s)
{
    difference as_bytes = { .differing = s->type_a != s->type_b };
    d->compared += s->elements;
    d->bytewise = d->bytewise || s->is_bytewise;
    if (!as_bytes.differing) {
        if (!walk(s, &as_bytes, w, memcmp_step))
            return false;
        s->is_again = true;
    }
    return !as_bytes.differing || walk(s, d, w, count_step);
}

/* Booleans are compared as numbers: a stored byte other than 0 and 1 differs from 1. */
static heft_dtype number_type(heft_dtype t)
{
    return t == HEFT_BOOL ? HEFT_U8 : t;
}

bool compare_suits(heft_dtype a, heft_dtype b)
{
    number_kind x = number_kind_of(number_type(a)), y = number_kind_of(number_type(b));
    return a == b || (x && y && (x == NUMBER_COMPLEX) == (y == NUMBER_COMPLEX));
}

static uint64_t elements_of(const chunk_reader *p, heft_dtype type, const heft_tensor *t)
{
    /* The last quantised block may hold fewer elements than its capacity. */
    return elements_in(type, p->length, t->layout == HEFT_DENSE ? tensor_elements(t) : UINT64_MAX);
}

static bool compare_parts(difference *d, work *w, const side *a, const side *b, uint32_t part_a,
                          uint32_t part_b, tolerance t)
{
    streams s = { .t = t, .b = { .buf = NULL } };
    heft_tensor tensor = heft_tensor_at(a->f, a->tensor);
    s.type_a = number_type(heft_part_at(a->f, part_a).dtype);
    s.type_b = number_type(heft_part_at(b->f, part_b).dtype);
    if (!s.type_a || !s.type_b) /* compare untyped bytes with typed data as bytes */
        s.type_a = s.type_b = HEFT_UNTYPED;
    s.has_statistics = part_a == model_values(a->f, a->tensor);
    s.is_bytewise = number_kind_of(s.type_a) == NUMBER_NONE;
    bool ok = chunk_reader_open(&s.a, w, a->f, a->path, part_a, a->checks) &&
              chunk_reader_open(&s.b, w, b->f, b->path, part_b, b->checks);
    if (ok) {
        uint64_t other = s.is_bytewise ? s.b.length : elements_of(&s.b, s.type_b, &tensor);
        s.elements = s.is_bytewise ? s.a.length : elements_of(&s.a, s.type_a, &tensor);
        d->incomparable = s.elements != other || (s.type_a == s.type_b && s.a.length != s.b.length);
    }
    if (ok && !d->incomparable)
        ok = compare_streams(d, w, &s);
    chunk_reader_close(&s.a);
    chunk_reader_close(&s.b);
    return ok;
}

void compare_tensors(difference *d, work *w, const side *a, const side *b, tolerance t)
{
    heft_tensor x = heft_tensor_at(a->f, a->tensor), y = heft_tensor_at(b->f, b->tensor);
    *d = (difference){ .incomparable = x.part_count != y.part_count, .first = HEFT_NOWHERE };
    for (uint32_t i = 0; i < x.part_count && !d->incomparable; i++) {
        heft_part p = heft_part_at(a->f, x.first_part + i);
        uint32_t other = heft_part_find(b->f, b->tensor, p.role);
        heft_dtype type = other == HEFT_NONE ? p.dtype : heft_part_at(b->f, other).dtype;
        if (other == HEFT_NONE || (type && p.dtype && !compare_suits(type, p.dtype)))
            d->incomparable = true;
        else if (!compare_parts(d, w, a, b, x.first_part + i, other, t))
            return;
    }
}
