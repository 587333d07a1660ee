/* decimal.c - finds the shortest decimal number that reads back as the same double.
 *
 * Free-format printing by Steele and White, with the improvements of Burger and Dybvig ("Printing
 * Floating-Point Numbers Quickly and Accurately", 1996): exact integer arithmetic generates digits
 * until the remainder is within half the distance to a neighbouring double.  Meant for a few
 * metadata values, not for speed.
 */
#include "model/values.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "model/float.h"

enum {
    WORDS = 37, /* 1184 bits for a mantissa of 53 bits * 2^1076 * 10 */
    MANT_BITS = 52,
    MAX_DIGITS = 17
};

typedef struct big {
    uint32_t w[WORDS]; /* lowest word first */
} big;

typedef struct digits {
    char d[MAX_DIGITS + 1];
    int32_t count, exp10; /* the value is 0.d * 10^exp10 */
} digits;

static void multiply(big *b, uint32_t n)
{
    uint64_t carry = 0;
    for (int i = 0; i < WORDS; i++) {
        carry += (uint64_t)b->w[i] * n;
        b->w[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static void set_shifted(big *b, uint64_t v, uint32_t by)
{
    uint32_t at = by / 32, low = by % 32;
    memset(b, 0, sizeof *b);
    b->w[at] = (uint32_t)(v << low);
    b->w[at + 1] = (uint32_t)(v << low >> 32);
    b->w[at + 2] = low ? (uint32_t)(v >> (64 - low)) : 0;
}

static void subtract(big *a, const big *b)
{
    uint64_t borrow = 0;
    for (int i = 0; i < WORDS; i++) {
        uint64_t d = (uint64_t)a->w[i] - b->w[i] - borrow;
        a->w[i] = (uint32_t)d;
        borrow = d >> 63;
    }
}

static int compare(const big *a, const big *b)
{
    for (int i = WORDS; i--;)
        if (a->w[i] != b->w[i])
            return a->w[i] < b->w[i] ? -1 : 1;
    return 0;
}

/* A value rest / unit, and the interval from (rest - below) / unit to (rest + above) / unit of all
 * numbers that read back as the same double. */
typedef struct state {
    big rest, unit, above, below;
    bool even; /* the mantissa is even, so the ends of the interval read back as well */
} state;

/* Return true if the interval, multiplied by scale, reaches 1. */
static bool reaches_one(const state *s, uint32_t scale)
{
    big top = s->rest;
    uint64_t carry = 0;
    for (int i = 0; i < WORDS; i++) {
        carry += (uint64_t)top.w[i] + s->above.w[i];
        top.w[i] = (uint32_t)carry;
        carry >>= 32;
    }
    multiply(&top, scale);
    return compare(&top, &s->unit) >= !s->even;
}

static void multiply_by_ten(state *s)
{
    multiply(&s->rest, 10);
    multiply(&s->above, 10);
    multiply(&s->below, 10);
}

static void begin(state *s, uint64_t mant, uint32_t exp)
{
    uint64_t full = exp ? mant | (uint64_t)1 << MANT_BITS : mant;
    int32_t power = (int32_t)(exp ? exp : 1) - 1075;
    uint32_t up = power > 0 ? (uint32_t)power : 0, down = power < 0 ? (uint32_t)-power : 0;
    uint32_t narrow = !mant && exp > 1; /* a power of 2: half the distance to the double below */
    set_shifted(&s->rest, full, up + 1 + narrow);
    set_shifted(&s->unit, 1, down + 1 + narrow);
    set_shifted(&s->above, 1, up + narrow);
    set_shifted(&s->below, 1, up);
    s->even = !(full & 1);
}

static void generate(state *s, digits *out)
{
    bool low = false, high = false;
    while (!low && !high) {
        char digit = '0';
        multiply_by_ten(s);
        for (; compare(&s->rest, &s->unit) >= 0; digit++)
            subtract(&s->rest, &s->unit);
        out->d[out->count++] = digit;
        low = compare(&s->rest, &s->below) < s->even;
        high = reaches_one(s, 1);
    }
    multiply(&s->rest, 2);
    int half = compare(&s->rest, &s->unit);
    bool odd = (out->d[out->count - 1] - '0') & 1;
    /* Never 9 + 1: the digit before would have ended the loop, since its successor reads back. */
    if (high && (!low || half > 0 || (half == 0 && odd)))
        out->d[out->count - 1]++;
}

static digits shortest(uint64_t mant, uint32_t exp)
{
    digits out = { .count = 0 };
    state s;
    begin(&s, mant, exp);
    for (; reaches_one(&s, 1); out.exp10++)
        multiply(&s.unit, 10);
    for (; !reaches_one(&s, 10); out.exp10--)
        multiply_by_ten(&s);
    generate(&s, &out);
    return out;
}

static size_t put_exponent(char *out, int32_t exp)
{
    char text[20];
    size_t n = heft_u64_text(text, (uint64_t)(exp < 0 ? -exp : exp)), at = 0;
    out[at++] = 'e';
    out[at++] = exp < 0 ? '-' : '+';
    if (n == 1)
        out[at++] = '0';
    memcpy(out + at, text, n);
    return at + n;
}

/* Write numbers from 1e-4 to below 1e16 without an exponent, as Python does. */
static size_t put_digits(char *out, const digits *d)
{
    size_t at = 0;
    bool plain = d->exp10 > -4 && d->exp10 <= 16;
    int32_t before = plain ? d->exp10 : 1; /* digits before the point */
    if (before <= 0)
        out[at++] = '0';
    for (int32_t i = before < 0 ? before : 0; i < d->count || i < before; i++) {
        if (i == before)
            out[at++] = '.';
        out[at++] = i >= 0 && i < d->count ? d->d[i] : '0';
    }
    if (plain && d->count <= before) {
        out[at++] = '.';
        out[at++] = '0';
    }
    return plain ? at : at + put_exponent(out + at, d->exp10 - 1);
}

size_t heft_f64_text(char out[HEFT_F64_TEXT], double v)
{
    uint64_t bits = heft_f64_bits(v), mant = bits & (((uint64_t)1 << MANT_BITS) - 1);
    uint32_t exp = (uint32_t)(bits >> MANT_BITS) & 0x7FF;
    heft_str word = { NULL, 0 };
    if (exp == 0x7FF)
        word = heft_lit(mant ? "nan" : "inf");
    else if (!exp && !mant)
        word = heft_lit("0.0");
    size_t sign = bits >> 63 && !(exp == 0x7FF && mant);
    if (sign)
        out[0] = '-';
    if (word.ptr) {
        memcpy(out + sign, word.ptr, word.len);
        return sign + word.len;
    }
    digits d = shortest(mant, exp);
    return sign + put_digits(out + sign, &d);
}
