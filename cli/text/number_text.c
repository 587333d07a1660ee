#include "text/number_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/jsonout.h"

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
