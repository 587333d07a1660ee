#include "value_text.h"

#include <math.h>

#include "jsonout.h"
#include "model.h"
#include "number_text.h"

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
