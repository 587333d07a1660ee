#include "text/number_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/jsonout.h"

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

number_kind number_kind_of(heft_dtype t)
{
    static const number_kind kinds[] = {
        [HEFT_DTYPE_BOOL] = NUMBER_BOOL,       [HEFT_DTYPE_UINT] = NUMBER_UINT,
        [HEFT_DTYPE_INT] = NUMBER_INT,         [HEFT_DTYPE_FLOAT] = NUMBER_REAL,
        [HEFT_DTYPE_COMPLEX] = NUMBER_COMPLEX,
    };
    const heft_dtype_info *d = heft_dtype_get(t);
    if (d && d->kind == HEFT_DTYPE_BLOCK) /* some block types are copied but not decoded */
        return heft_dtype_can_cast(HEFT_F32, t) ? NUMBER_REAL : NUMBER_NONE;
    return d && d->kind < sizeof kinds / sizeof *kinds ? kinds[d->kind] : NUMBER_NONE;
}

number number_at(heft_dtype t, const void *src, uint64_t i)
{
    number n = { .kind = number_kind_of(t) };
    if (n.kind == NUMBER_NONE)
        return n;
    size_t bytes = heft_dtype_get(t)->block_bytes;
    if (n.kind == NUMBER_REAL || n.kind == NUMBER_COMPLEX) {
        double pair[2] = { 0, 0 };
        if (!heft_dtype_to_f64(pair, t, src, n.kind == NUMBER_COMPLEX ? 2 * i : i,
                               n.kind == NUMBER_COMPLEX ? 2 : 1))
            n.kind = NUMBER_NONE;
        n.f = pair[0];
        n.imaginary = pair[1];
        return n;
    }
    const uint8_t *p = (const uint8_t *)src + i * bytes;
    for (size_t k = 0; k < bytes; k++)
        n.u |= (uint64_t)p[k] << (8 * k);
    uint64_t sign = (uint64_t)1 << (8 * bytes - 1), wide = (n.u ^ sign) - sign;
    if (n.kind == NUMBER_INT)
        memcpy(&n.i, &wide, sizeof n.i);
    return n;
}

static bool reads_back(const char *text, double v, heft_dtype t)
{
    double d = strtod(text, NULL);
    uint8_t a[8] = { 0 }, b[8] = { 0 };
    if (t == HEFT_F64 || !heft_dtype_cast(a, t, &d, HEFT_F64, 1) ||
        !heft_dtype_cast(b, t, &v, HEFT_F64, 1))
        return d == v;
    return !memcmp(a, b, sizeof a);
}

int number_digits(double v, heft_dtype t)
{
    enum { MAX_DIGITS = 17, ALWAYS_EXACT = 15 };
    if (heft_dtype_get(t)->block_elems > 1 && heft_dtype_can_cast(HEFT_F32, t))
        t = HEFT_F32; /* blocks decode to f32 */
    /* A normal double survives conversion to 15 digits and back, so fewer than 15 need not be
     * tried. */
    int digits = t == HEFT_F64 && (v == 0 || fabs(v) >= 2.3e-308) ? ALWAYS_EXACT : 1;
    for (char text[40]; digits < MAX_DIGITS; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, v);
        if (reads_back(text, v, t))
            break;
    }
    return digits;
}

const char *dtype_name(heft_dtype t)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    return d ? d->name : NULL;
}

void out_dtype(outbuf *o, heft_dtype t)
{
    const char *name = dtype_name(t);
    for (const char *c = name ? name : "-"; *c; c++)
        out_char(o, *c);
}

/* ---- values of the metadata ---- */

static void put_string(outbuf *o, heft_str s, size_t most)
{
    size_t shown = s.len < most ? s.len : most;
    while (shown < s.len && shown && ((uint8_t)s.ptr[shown] & 0xC0) == 0x80)
        shown--;
    out_escaped(o, (heft_str){ s.ptr, shown });
    if (shown < s.len)
        out_format(o, "... (%llu bytes)", (unsigned long long)s.len);
}

/* Print the digits that the stored type needs. NaN and infinities are spelled as `--set KEY:f64=`
 * accepts them. */
static void put_float(outbuf *o, const heft_value *v)
{
    json j = { o, false };
    if (!isfinite(v->as.f))
        out_text(o, isnan(v->as.f) ? "nan" : v->as.f > 0 ? "inf" : "-inf");
    else if (v->stored == HEFT_F32)
        out_format(o, "%.*g", number_digits(v->as.f, HEFT_F32), v->as.f);
    else
        json_f64(&j, v->as.f);
}

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

void out_value(outbuf *o, const heft_value *v, size_t most)
{
    json j = { o, false };
    switch (v->kind) {
    case HEFT_KIND_STR:
        put_string(o, v->as.s, most);
        break;
    case HEFT_KIND_LIST:
        out_format(o, "[%u value%s]", v->as.container.count, plural(v->as.container.count));
        break;
    case HEFT_KIND_MAP:
        out_format(o, "{%u key%s}", v->as.container.count, plural(v->as.container.count));
        break;
    case HEFT_KIND_ARRAY:
        out_format(o, "[%u ", v->as.array.count);
        out_dtype(o, v->as.array.dtype);
        out_char(o, ']');
        break;
    case HEFT_KIND_BYTES:
        out_format(o, "<%llu bytes>", (unsigned long long)v->as.s.len);
        break;
    case HEFT_KIND_FLOAT:
        put_float(o, v);
        break;
    default:
        json_scalar(&j, v);
    }
}
