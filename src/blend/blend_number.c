/* blend_number.c - decimal numbers of settings, rounded correctly by one operation on two
 * doubles and its rounding error. */
#include "blend/blending.h"

/* Return a * b, and the rounding error, by halves of 26 bits (Dekker). */
static double multiply(double a, double b, double *error)
{
    const double split = 134217729; /* 2^27 + 1 */
    double p = a * b, ah = split * a, bh = split * b;
    ah = ah - (ah - a);
    bh = bh - (bh - b);
    double al = a - ah, bl = b - bh;
    *error = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
    return p;
}

/* Return digits * 10^scale.  Powers of ten up to 10^22 are doubles, and the digits are the sum of
 * two: the error of the first operation is computed and added. */
static double scaled(uint64_t digits, int scale)
{
    static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    uint64_t rest = digits >> 53 ? digits & 0x7FF : 0; /* what a double cannot hold as well */
    double high = (double)(digits - rest), low = (double)rest, error;
    double ten = tens[scale < 0 ? -scale : scale];
    if (scale >= 0) {
        double product = multiply(high, ten, &error);
        return product + (error + low * ten);
    }
    double quotient = high / ten, product = multiply(quotient, ten, &error);
    return quotient + ((high - product - error) + low) / ten;
}

bool heft_blend_number(double *out, heft_str text)
{
    enum { MOST = 22, LONG_EXPONENT = 1000 };
    const char *p = text.ptr, *end = text.ptr + text.len;
    uint64_t digits = 0;
    int scale = 0, exponent = 0, seen = 0;
    bool is_negative = p < end && *p == '-', has_point = false;
    for (p += is_negative; p < end && ((*p >= '0' && *p <= '9') || (*p == '.' && !has_point));
         p++) {
        has_point = has_point || *p == '.';
        if (*p == '.')
            continue;
        if (digits >= UINT64_C(1000000000000000000)) /* 19 digits */
            return false;
        digits = digits * 10 + (uint64_t)(*p - '0');
        scale -= has_point;
        seen++;
    }
    if (seen && p < end && (*p == 'e' || *p == 'E')) {
        bool is_small = ++p < end && *p == '-';
        p += p < end && (*p == '-' || *p == '+');
        for (seen = 0; p < end && *p >= '0' && *p <= '9'; p++, seen++)
            exponent = exponent < LONG_EXPONENT ? exponent * 10 + (*p - '0') : exponent;
        scale += is_small ? -exponent : exponent;
    }
    if (p != end || !seen || (digits && (scale > MOST || scale < -MOST)))
        return false;
    double v = digits ? scaled(digits, scale) : 0;
    *out = is_negative ? -v : v;
    return true;
}
