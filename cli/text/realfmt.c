#include "text/realfmt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FRACTION = 8 }; /* maximum digits after the point */

typedef struct decimal {
    char digits[24]; /* without the point and trailing zeros */
    int count, exponent;
    bool negative;
} decimal;

static decimal digits_of(double v, int precision)
{
    char text[48];
    decimal d = { .negative = signbit(v) };
    snprintf(text, sizeof text, "%.*e", precision, fabs(v));
    for (const char *p = text; *p && *p != 'e'; p++)
        if (*p != '.')
            d.digits[d.count++] = *p;
    while (d.count > 1 && d.digits[d.count - 1] == '0')
        d.count--;
    d.exponent = atoi(strchr(text, 'e') + 1);
    return d;
}

static decimal shortest(double v, heft_dtype t)
{
    return digits_of(v, number_digits(v, t) - 1);
}

/* Return the number of digits after the point in positional notation. */
static int fraction_digits(const decimal *d)
{
    int n = d->count - 1 - d->exponent;
    return n > 0 && d->digits[0] != '0' ? n : 0;
}

/* Return the shortest digits, but all digits before the point and at most eight after it. */
static decimal positional(double v, heft_dtype t)
{
    decimal d = shortest(v, t);
    if (d.exponent >= d.count)
        return digits_of(v, d.exponent);
    if (fraction_digits(&d) <= MAX_FRACTION)
        return d;
    char text[400];
    snprintf(text, sizeof text, "%.*f", MAX_FRACTION, fabs(v));
    double rounded = strtod(text, NULL);
    int whole = rounded >= 1 ? (int)strcspn(text, ".") : 0;
    decimal r = digits_of(rounded, whole + MAX_FRACTION < 20 ? whole + MAX_FRACTION : 20);
    r.negative = d.negative;
    return r;
}

/* Write "12." or "0.05", always with a point. */
static void put_positional(outbuf *o, const decimal *d)
{
    int e = d->digits[0] == '0' ? 0 : d->exponent;
    for (int i = 0; i <= (e > 0 ? e : 0); i++)
        out_char(o, e >= 0 && i < d->count ? d->digits[i] : '0');
    out_char(o, '.');
    for (int i = -1; i >= -fraction_digits(d); i--)
        out_char(o, e - i >= 0 && e - i < d->count && i <= e ? d->digits[e - i] : '0');
}

static double component(const number *n, bool imaginary)
{
    return imaginary ? n->imaginary : n->f;
}

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

static void widen(real_format *f, double v)
{
    decimal d = f->exponent ? shortest(v, f->type) : positional(v, f->type);
    if (f->exponent && d.count > MAX_FRACTION + 1)
        d = digits_of(v, MAX_FRACTION);
    int sign = d.negative || f->imaginary;
    if (f->exponent) {
        f->left = max_int(f->left, 1 + sign);
        f->precision = max_int(f->precision, d.count - 1);
        f->exp_digits = max_int(f->exp_digits, abs(d.exponent) > 99 ? 3 : 2);
        f->right = f->exp_digits + 2 + f->precision;
    } else {
        int whole = d.digits[0] == '0' || d.exponent < 0 ? 1 : d.exponent + 1;
        f->left = max_int(f->left, whole + sign);
        f->right = max_int(f->right, fraction_digits(&d));
    }
}

real_format real_format_for(const number *values, size_t count, heft_dtype type, bool imaginary)
{
    real_format f = { .type = type, .imaginary = imaginary };
    int special = 0;
    double max = 0, min = HUGE_VAL;
    for (size_t i = 0; i < count; i++) {
        double v = fabs(component(&values[i], imaginary));
        if (isfinite(v) && v > 0) {
            max = v > max ? v : max;
            min = v < min ? v : min;
        }
    }
    f.exponent = max > 0 && (max >= 1e8 || min < 1e-4 || max / min > 1000);
    for (size_t i = 0; i < count; i++) {
        double v = component(&values[i], imaginary);
        if (isfinite(v))
            widen(&f, v);
        else
            special = max_int(special, 3 + ((isinf(v) && v < 0) || imaginary));
    }
    f.left = max_int(f.left, special - f.right - 1);
    return f;
}

static const char *special_name(double v, bool plus)
{
    if (isnan(v))
        return plus ? "+nan" : "nan";
    return v < 0 ? "-inf" : plus ? "+inf" : "inf";
}

static void pad(outbuf *o, int n)
{
    if (n > 0)
        out_fill(o, ' ', (size_t)n);
}

void out_real(outbuf *o, const real_format *f, double v)
{
    if (!isfinite(v)) {
        const char *name = special_name(v, f->imaginary);
        pad(o, f->left + f->right + 1 - (int)strlen(name));
        out_text(o, name);
        return;
    }
    decimal d = f->exponent ? digits_of(v, f->precision) : positional(v, f->type);
    int whole = f->exponent || d.digits[0] == '0' || d.exponent < 0 ? 1 : d.exponent + 1;
    pad(o, f->left - whole - (d.negative || f->imaginary));
    if (d.negative || f->imaginary)
        out_char(o, d.negative ? '-' : '+');
    if (f->exponent) {
        out_char(o, d.digits[0]);
        out_char(o, '.');
        for (int i = 1; i <= f->precision; i++)
            out_char(o, i < d.count ? d.digits[i] : '0');
        out_format(o, "e%c%0*d", d.exponent < 0 ? '-' : '+', f->exp_digits, abs(d.exponent));
    } else {
        put_positional(o, &d);
        pad(o, f->right - fraction_digits(&d));
    }
}

/* Write "1.", "0.25" or "1e-05". */
static void put_alone(outbuf *o, heft_dtype type, double v)
{
    decimal d = shortest(v, type);
    if (d.negative)
        out_char(o, '-');
    if (v == 0 || (fabs(v) >= 1e-4 && fabs(v) < 1e16)) {
        put_positional(o, &d);
        return;
    }
    out_char(o, d.digits[0]);
    if (d.count > 1)
        out_char(o, '.');
    out_bytes(o, d.digits + 1, (size_t)d.count - 1);
    out_format(o, "e%c%02d", d.exponent < 0 ? '-' : '+', abs(d.exponent));
}

void out_real_alone(outbuf *o, heft_dtype type, double v)
{
    if (!isfinite(v)) {
        out_text(o, special_name(v, false));
        return;
    }
    put_alone(o, type, v);
    if (o->used && o->buf[o->used - 1] == '.')
        out_char(o, '0');
}

/* Write a component of a complex number: like put_alone(), without a trailing point. */
static void put_half(outbuf *o, heft_dtype type, double v, bool plus)
{
    if (plus && !signbit(v))
        out_char(o, '+');
    if (!isfinite(v)) {
        out_text(o, special_name(v, false));
        return;
    }
    put_alone(o, type, v);
    if (o->used && o->buf[o->used - 1] == '.')
        o->used--;
}

void out_complex_alone(outbuf *o, heft_dtype half, double real, double imaginary)
{
    bool both = real != 0 || signbit(real);
    if (both) {
        out_char(o, '(');
        put_half(o, half, real, false);
    }
    put_half(o, half, imaginary, both);
    out_text(o, both ? "j)" : "j");
}
