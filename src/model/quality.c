/* quality.c - sums over pairs of numbers that do not depend on the order of the runs.
 *
 * A square of a difference of two f32 is a multiple of 2^-298, and so is a sum of such doubles: an
 * exact sum has a bit for each, and room for 2^64 of the largest. */
#include "model/quality.h"

#include "base/error.h"
#include "model/float.h"

enum { LANES = 8, LIMB_BITS = 32, PIECE = 128 };
enum { F64_MANTISSA = 52, F64_BIAS = 1023, F64_EXPONENTS = 0x7FF };

static const uint64_t limb_mask = 0xFFFFFFFF;

/* ---- exact sums ---- */

/* Add a finite number to a sum: its mantissa lies in up to three limbs. */
static void add_exactly(heft_exact_sum *s, double x)
{
    uint64_t bits = heft_f64_bits(x), exponent = bits >> F64_MANTISSA & F64_EXPONENTS;
    uint64_t hidden = UINT64_C(1) << F64_MANTISSA, mantissa = (bits & (hidden - 1)) | hidden;
    if (!exponent)
        return; /* 0: the smallest square is no subnormal f64 */
    uint64_t at = exponent + HEFT_SUM_ONE - F64_BIAS - F64_MANTISSA;
    int64_t sign = bits >> 63 ? -1 : 1;
    if (exponent < F64_BIAS + F64_MANTISSA - HEFT_SUM_ONE) { /* the bits below are 0 */
        mantissa >>= F64_BIAS + F64_MANTISSA - HEFT_SUM_ONE - exponent;
        at = 0;
    }
    int64_t *limb = s->limb + at / LIMB_BITS;
    uint64_t shift = at % LIMB_BITS, low = mantissa << shift;
    uint64_t high = shift ? mantissa >> (64 - shift) : 0;
    limb[0] += sign * (int64_t)(low & limb_mask);
    limb[1] += sign * (int64_t)(low >> LIMB_BITS);
    limb[2] += sign * (int64_t)high;
}

/* Add b to a, and let all limbs but the last be numbers of 32 bits. */
static void add_sum(heft_exact_sum *a, const heft_exact_sum *b)
{
    int64_t carry = 0;
    for (int i = 0; i < HEFT_SUM_LIMBS; i++) {
        int64_t limb = a->limb[i] + b->limb[i] + carry;
        int64_t kept = i + 1 < HEFT_SUM_LIMBS ? (int64_t)((uint64_t)limb & limb_mask) : limb;
        a->limb[i] = kept;
        carry = (limb - kept) >> LIMB_BITS; /* exact: the bits that go are 0 */
    }
}

double heft_exact_sum_value(const heft_exact_sum *s)
{
    double x = 0;
    for (int i = HEFT_SUM_LIMBS; i--;)
        x = x * 0x1p32 + (double)s->limb[i];
    return x * 0x1p-320;
}

/* ---- runs ---- */

static bool is_finite(float x)
{
    return x - x == 0;
}

static double magnitude(double x)
{
    return x < 0 ? -x : x;
}

/* Sums of a run, in lanes that compilers turn into vectors. */
typedef struct lanes {
    double squared[LANES], source[LANES], written[LANES], products[LANES], most[LANES];
    double differing[LANES];
} lanes;

static inline void add_lanes(lanes *l, const float *a, const float *b, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        double x = (double)a[k], y = (double)b[k], apart = x - y, size = apart < 0 ? -apart : apart;
        l->squared[k] += apart * apart;
        l->source[k] += x * x;
        l->written[k] += y * y;
        l->products[k] += x * y;
        l->most[k] = size > l->most[k] ? size : l->most[k];
        l->differing[k] += apart != 0 ? 1 : 0;
    }
}

static double sum_of(const double lane[LANES])
{
    return ((lane[0] + lane[4]) + (lane[1] + lane[5])) +
           ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

static void add_finite(heft_pair_sums *s, const float *a, const float *b, size_t n)
{
    lanes l = { .squared = { 0 } };
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        add_lanes(&l, a + i, b + i, LANES);
    add_lanes(&l, a + i, b + i, n - i);
    s->finite += n;
    s->differing += (uint64_t)sum_of(l.differing);
    add_exactly(&s->squared, sum_of(l.squared));
    add_exactly(&s->source, sum_of(l.source));
    add_exactly(&s->written, sum_of(l.written));
    add_exactly(&s->products, sum_of(l.products));
    for (int k = 0; k < LANES; k++)
        s->max_abs = l.most[k] > s->max_abs ? l.most[k] : s->max_abs;
}

/* Add a pair with a NaN or an infinity. */
static void add_special(heft_pair_sums *s, float a, float b)
{
    double apart = a == b ? 0 : magnitude((double)a - (double)b);
    s->differing += a != b && (a == a || b == b);
    s->max_abs = apart > s->max_abs ? apart : s->max_abs; /* not for NaN */
}

void heft_pairs_add(heft_pair_sums *s, const float *a, const float *b, size_t n)
{
    float x[PIECE], y[PIECE];
    size_t kept = 0;
    float all = 0;
    for (size_t i = 0; i < n; i++)
        all += (a[i] - a[i]) + (b[i] - b[i]); /* 0, or NaN */
    s->pairs += n;
    if (all == 0) {
        add_finite(s, a, b, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        bool is_number = is_finite(a[i]) && is_finite(b[i]);
        x[kept] = a[i];
        y[kept] = b[i];
        kept += is_number;
        if (!is_number)
            add_special(s, a[i], b[i]);
        if (kept == PIECE) {
            add_finite(s, x, y, kept);
            kept = 0;
        }
    }
    add_finite(s, x, y, kept);
}

void heft_pairs_join(heft_pair_sums *to, const heft_pair_sums *s)
{
    to->pairs += s->pairs;
    to->finite += s->finite;
    to->differing += s->differing;
    to->max_abs = s->max_abs > to->max_abs ? s->max_abs : to->max_abs;
    add_sum(&to->squared, &s->squared);
    add_sum(&to->source, &s->source);
    add_sum(&to->written, &s->written);
    add_sum(&to->products, &s->products);
}

/* ---- the object ---- */

heft_status heft_quality_add(uint32_t *out, heft_quality *q, heft_str name, heft_dtype from,
                             const char *type, heft_error *err)
{
    heft_quality_record r = { .name = heft_arena_copy(&q->arena, name),
                              .from = from,
                              .type = type };
    *out = q->records.len;
    return r.name.ptr && heft_vec_add(&q->mem, &q->records, &r, sizeof r)
               ? HEFT_OK
               : heft_error_no_memory(err, "to measure the quality");
}

void heft_quality_collect(heft_quality *q, uint32_t record, heft_pair_sums *take)
{
    if (!take->pairs)
        return;
    heft_spin_lock(&q->lock);
    heft_pairs_join(&((heft_quality_record *)q->records.ptr)[record].sums, take);
    heft_spin_unlock(&q->lock);
    *take = (heft_pair_sums){ .pairs = 0 };
}
