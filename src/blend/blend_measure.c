/* blend_measure.c - what the formulas need of whole tensors: the magnitude from which on
 * differences are kept, and the angle between two tensors.  Memory does not grow with a tensor. */
#include "base/error.h"
#include "base/text.h"
#include "blend/blending.h"
#include "core/read/progress.h"
#include "model/float.h"

enum {
    PIECE = 4096, /* part of the specification of sums */
    LANES = 8,    /* part of the specification, too */
    HIGH_BITS = 15,
    LOW_BITS = 16,
    ALIGN = 64
};
static const char purpose[] = "to measure a tensor";

typedef struct measure { /* a thread has one */
    heft_combine_reader base, other;
    float x[PIECE], y[PIECE];
    uint64_t counts[1 << LOW_BITS];
    heft_progress *progress; /* counts elements */
} measure;

/* ---- the generator: SplitMix64 ---- */

static const uint64_t step = UINT64_C(0x9E3779B97F4A7C15);

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* The name goes in as its FNV-1a of 64 bits. */
uint64_t heft_blend_key(uint64_t seed, heft_str tensor, uint32_t model)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < tensor.len; i++)
        h = (h ^ (uint8_t)tensor.ptr[i]) * UINT64_C(0x100000001B3);
    return mix(mix(seed + step) ^ mix(h + (model + UINT64_C(1)) * step));
}

bool heft_blend_keeps(uint64_t key, uint64_t element, double density)
{
    const double unit = 1.0 / 9007199254740992.0; /* 2^-53 */
    return (double)(mix(key + (element + 1) * step) >> 11) * unit < density;
}

/* ---- slerp, without a C library ---- */

static double square_root(double v)
{
    enum { TURNS = 6 };
    if (!(v > 0))
        return 0;
    double x = heft_f64_of((heft_f64_bits(v) >> 1) + (UINT64_C(1023) << 51)); /* within 4 % */
    for (int i = 0; i < TURNS; i++)
        x = 0.5 * (x + v / x);
    return x;
}

/* Halve the angle until the series converges fast. */
static double arc_tangent(double x)
{
    enum { HALVINGS = 3, TERMS = 16 };
    double sum = 0;
    for (int i = 0; i < HALVINGS; i++)
        x = x / (1 + square_root(1 + x * x));
    for (int k = TERMS; k >= 0; k--)
        sum = 1.0 / (2 * k + 1) - x * x * sum;
    return (1 << HALVINGS) * x * sum;
}

/* Return the sine of an angle from 0 to pi. */
static double sine(double x)
{
    enum { TERMS = 14 };
    const double pi = 3.14159265358979323846;
    double sum = 1;
    x = x > pi / 2 ? pi - x : x;
    for (int k = TERMS; k > 0; k--)
        sum = 1 - x * x / ((2.0 * k) * (2 * k + 1)) * sum;
    return x * sum;
}

void heft_blend_slerp(float share[2], double cosine, double t)
{
    const double straight = 0.9995;
    share[0] = (float)(1 - t);
    share[1] = (float)t;
    if (!(cosine <= straight && cosine >= -straight))
        return;
    double angle = 2 * arc_tangent(square_root((1 - cosine) / (1 + cosine)));
    double whole = sine(angle);
    share[0] = (float)(sine((1 - t) * angle) / whole);
    share[1] = (float)(sine(t * angle) / whole);
}

/* Add the products of a piece: lane j has the elements j, j + 8, ...; then the lanes are added. */
static void add_products(double *total, const float *x, const float *y, size_t n)
{
    double lane[LANES] = { 0 }, piece = 0;
    for (size_t i = 0; i < n; i++)
        lane[i % LANES] += (double)x[i] * (double)y[i];
    for (int j = 0; j < LANES; j++)
        piece += lane[j];
    *total += piece;
}

/* Read the next piece of both tensors; *n is 0 if the work is to end. */
static heft_status read_pair(measure *m, const heft_blend_tensor *t, const heft_blend_input *in,
                             uint64_t at, size_t *n, heft_error *err)
{
    uint64_t left = heft_progress_halted(m->progress) ? 0 : in->in.count - at;
    *n = left < PIECE ? (size_t)left : PIECE;
    if (*n)
        HEFT_TRY(heft_combine_read(&m->base, &t->base, at, *n, m->x, err));
    if (*n)
        HEFT_TRY(heft_combine_read(&m->other, &in->in, at, *n, m->y, err));
    heft_progress_add(m->progress, *n);
    return HEFT_OK;
}

static heft_status find_angle(const heft_blend *b, heft_blend_tensor *t, measure *m,
                              heft_error *err)
{
    const heft_blend_input *in = heft_blend_inputs(b, t);
    double xx = 0, yy = 0, xy = 0;
    size_t n;
    for (uint64_t at = 0;; at += n) {
        HEFT_TRY(read_pair(m, t, in, at, &n, err));
        if (!n)
            break;
        add_products(&xx, m->x, m->x, n);
        add_products(&yy, m->y, m->y, n);
        add_products(&xy, m->x, m->y, n);
    }
    double norms = square_root(xx) * square_root(yy);
    heft_blend_slerp(t->share, norms > 0 ? xy / norms : 1, t->t);
    return HEFT_OK;
}

/* ---- the largest differences ---- */

/* Call for each piece of the differences, as bits of their magnitudes; false ends the walk. */
typedef bool (*visit_fn)(void *ctx, uint64_t at, uint32_t magnitude);

static heft_status each_difference(const heft_blend_tensor *t, const heft_blend_input *in,
                                   measure *m, visit_fn visit, void *ctx, heft_error *err)
{
    size_t n;
    for (uint64_t at = 0;; at += n) {
        HEFT_TRY(read_pair(m, t, in, at, &n, err));
        if (!n)
            return HEFT_OK;
        for (size_t i = 0; i < n; i++)
            if (!visit(ctx, at + i, heft_f32_bits(m->y[i] - m->x[i]) & INT32_MAX))
                return HEFT_OK;
    }
}

typedef struct selection {
    uint64_t *counts;
    uint64_t left; /* elements that are kept of those that are counted */
    uint32_t high; /* upper bits of the magnitude that is sought */
    uint32_t least;
    uint64_t last;
} selection;

static bool count_high(void *ctx, uint64_t at, uint32_t magnitude)
{
    selection *s = ctx;
    (void)at;
    s->counts[magnitude >> LOW_BITS]++;
    return true;
}

static bool count_low(void *ctx, uint64_t at, uint32_t magnitude)
{
    selection *s = ctx;
    (void)at;
    s->counts[magnitude & ((1 << LOW_BITS) - 1)] += magnitude >> LOW_BITS == s->high;
    return true;
}

static bool find_last(void *ctx, uint64_t at, uint32_t magnitude)
{
    selection *s = ctx;
    s->left -= magnitude == s->least;
    s->last = at;
    return s->left > 0;
}

/* Find the bucket with the element that is number `left` from above; left becomes its rank in the
 * bucket. */
static uint32_t find_bucket(selection *s, uint32_t buckets)
{
    uint32_t i = buckets - 1;
    while (i && s->counts[i] < s->left)
        s->left -= s->counts[i--];
    return i;
}

/* Find the least magnitude of the k largest, in two passes; a third finds where the equal ones that
 * are kept end. */
static heft_status find_largest(const heft_blend_tensor *t, heft_blend_input *in, measure *m,
                                heft_error *err)
{
    selection s = { .counts = m->counts, .left = (uint64_t)(in->density * (double)in->in.count) };
    in->least = UINT32_MAX; /* nothing is kept */
    if (!s.left)
        return HEFT_OK;
    memset(m->counts, 0, sizeof m->counts);
    HEFT_TRY(each_difference(t, in, m, count_high, &s, err));
    s.high = find_bucket(&s, 1 << HIGH_BITS);
    memset(m->counts, 0, sizeof m->counts);
    HEFT_TRY(each_difference(t, in, m, count_low, &s, err));
    uint32_t low = find_bucket(&s, 1 << LOW_BITS);
    s.least = s.high << LOW_BITS | low;
    in->least = s.least;
    in->last = UINT64_MAX;
    if (s.left == s.counts[low])
        return HEFT_OK;
    HEFT_TRY(each_difference(t, in, m, find_last, &s, err));
    in->last = s.last;
    return HEFT_OK;
}

/* ---- all tensors ---- */

typedef struct measuring {
    heft_blend *b;
    size_t has_failed; /* atomic */
    heft_progress progress;
} measuring;

static heft_status measure_with(heft_blend *b, heft_blend_tensor *t, measure *m, heft_error *err)
{
    heft_blend_input *in = heft_blend_inputs(b, t);
    if (b->s->method->is_slerp)
        return find_angle(b, t, m, err);
    for (uint32_t k = 0; k < t->count; k++)
        if (in[k].density < 1)
            HEFT_TRY(find_largest(t, &in[k], m, err));
    return HEFT_OK;
}

static heft_status measure_tensor(heft_blend *b, uint32_t i, heft_progress *progress,
                                  heft_error *err)
{
    const heft_allocator *al = b->base->host->allocator;
    measure *m = heft_alloc(al, sizeof *m, ALIGN);
    if (!m)
        return heft_error_no_memory(err, purpose);
    m->base = m->other = (heft_combine_reader){ .in = NULL };
    m->progress = progress;
    heft_status st = measure_with(b, (heft_blend_tensor *)b->tensors.ptr + i, m, err);
    heft_combine_reader_free(&m->base);
    heft_combine_reader_free(&m->other);
    heft_free(al, m, sizeof *m, ALIGN);
    return st;
}

static void run_measure(void *arg, size_t i)
{
    measuring *all = arg;
    heft_error err;
    if (measure_tensor(all->b, (uint32_t)i, &all->progress, &err))
        heft_atomic_publish(&all->has_failed, 1);
}

/* Return how many elements are read of all tensors: two passes for a threshold. */
static uint64_t count_elements(const heft_blend *b)
{
    const heft_blend_tensor *all = b->tensors.ptr;
    uint64_t total = 0;
    for (uint32_t i = 0; i < b->tensors.len; i++)
        for (uint32_t k = 0; k < all[i].count; k++) {
            const heft_blend_input *in = heft_blend_inputs(b, &all[i]) + k;
            total += b->s->method->is_slerp ? in->in.count : in->density < 1 ? 2 * in->in.count : 0;
        }
    return total;
}

heft_status heft_blend_measure(heft_blend *b)
{
    measuring all = { .b = b };
    if (!b->s->method->is_slerp && !b->s->method->trims)
        return HEFT_OK;
    all.progress =
        (heft_progress){ .fn = b->opt.progress, .ctx = b->opt.ctx, .total = count_elements(b) };
    heft_host_run(b->base->host, b->tensors.len, run_measure, &all);
    /* The first tensor that fails is named, whatever the order of the threads. */
    for (uint32_t i = 0; all.has_failed && i < b->tensors.len; i++)
        HEFT_TRY(measure_tensor(b, i, &all.progress, b->err));
    return heft_progress_end(&all.progress, b->err);
}
