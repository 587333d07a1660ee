/* gguf_build.c - collects metadata, and looks up values of the texts that they are made from. */
#include "gguf/gguf_build.h"

#include "base/error.h"
#include "base/text.h"

/* ---- values ---- */

void heft_gguf_add(heft_gguf_metadata *m, heft_value v)
{
    if (!v.key.ptr || !heft_vec_add(&m->mem, &m->values, &v, sizeof v))
        m->is_out_of_memory = true;
}

void heft_gguf_add_u32(heft_gguf_metadata *m, heft_str key, uint64_t v)
{
    heft_gguf_add(
        m, (heft_value){ .kind = HEFT_KIND_UINT, .stored = HEFT_U32, .key = key, .as.u = v });
}

void heft_gguf_add_f32(heft_gguf_metadata *m, heft_str key, double v)
{
    heft_gguf_add(
        m,
        (heft_value){ .kind = HEFT_KIND_FLOAT, .stored = HEFT_F32, .key = key, .as.f = (float)v });
}

void heft_gguf_add_bool(heft_gguf_metadata *m, const char *key, bool v)
{
    heft_gguf_add(m, heft_value_bool(heft_lit(key), v));
}

void heft_gguf_add_str(heft_gguf_metadata *m, const char *key, heft_str v)
{
    heft_gguf_add(m, heft_value_str(heft_lit(key), v));
}

void heft_gguf_add_list(heft_gguf_metadata *m, const char *key, uint64_t count)
{
    uint64_t end = m->values.len + 1 + count;
    heft_gguf_add(m, (heft_value){ .kind = HEFT_KIND_LIST,
                                   .key = heft_lit(key),
                                   .as.container = { (uint32_t)count, (uint32_t)end } });
}

void heft_gguf_add_array(heft_gguf_metadata *m, const char *key, const void *numbers,
                         uint32_t count, heft_dtype type)
{
    heft_gguf_add(m, (heft_value){ .kind = HEFT_KIND_ARRAY,
                                   .stored = type,
                                   .key = heft_lit(key),
                                   .as.array = { numbers, count, type } });
}

void heft_gguf_note(heft_gguf_metadata *m, const char *fmt, heft_str text)
{
    heft_error e;
    heft_error_plain(&e, HEFT_E_LOSSY, fmt, text);
    heft_str note = heft_arena_copy(&m->arena, heft_lit(e.message));
    if (!note.ptr || !heft_vec_add(&m->mem, &m->notes, &note, sizeof note))
        m->is_out_of_memory = true;
}

float *heft_gguf_add_extra(heft_gguf_metadata *m, const char *name, uint32_t count)
{
    float *values = heft_arena_alloc(&m->arena, (size_t)count * sizeof *values, sizeof *values);
    heft_gguf_extra extra = { name, values, count };
    if (!values || !heft_vec_add(&m->mem, &m->extras, &extra, sizeof extra)) {
        m->is_out_of_memory = true;
        return NULL;
    }
    return values;
}

/* ---- texts ---- */

heft_value heft_gguf_setting_at(const heft_settings *s, heft_str path)
{
    uint32_t at = s ? heft_settings_find_path(s, path) : HEFT_NONE;
    return at != HEFT_NONE ? heft_settings_value_at(s, at) : (heft_value){ .kind = HEFT_KIND_NULL };
}

heft_value heft_gguf_setting(const heft_gguf_metadata *m, heft_gguf_text text, const char *path)
{
    return heft_gguf_setting_at(m->json[text], heft_lit(path));
}

/* Take the next of several paths, and return whether there is one. */
static bool take_path(heft_str *path, const char **paths)
{
    const char *begin = *paths;
    if (!*begin)
        return false;
    size_t len = 0;
    while (begin[len] && begin[len] != '|')
        len++;
    *path = (heft_str){ begin, len };
    *paths = begin + len + (begin[len] == '|');
    return true;
}

/* Return the value at PREFIX and path in config.json. */
static heft_value look_up(const heft_gguf_metadata *m, const char *prefix, heft_str path)
{
    char text[128];
    heft_str head = heft_lit(prefix);
    if (head.len + path.len >= sizeof text)
        return (heft_value){ .kind = HEFT_KIND_NULL };
    memcpy(text, head.ptr, head.len);
    memcpy(text + head.len, path.ptr, path.len);
    text[head.len + path.len] = 0;
    return heft_gguf_setting(m, HEFT_GGUF_CONFIG, text);
}

static heft_value find_first(const heft_gguf_metadata *m, const char *const *prefixes, size_t count,
                             const char *paths)
{
    heft_value v = { .kind = HEFT_KIND_NULL };
    heft_str path;
    while (take_path(&path, &paths))
        for (size_t i = 0; i < count; i++) {
            v = look_up(m, prefixes[i], path);
            if (v.kind != HEFT_KIND_NULL)
                return v;
        }
    return v;
}

heft_value heft_gguf_config(const heft_gguf_metadata *m, const char *paths)
{
    static const char *const prefixes[] = { "text_config.", "" };
    return find_first(m, prefixes, sizeof prefixes / sizeof *prefixes, paths);
}

heft_value heft_gguf_rope(const heft_gguf_metadata *m, const char *keys)
{
    static const char *const prefixes[] = {
        "text_config.rope_parameters.full_attention.",
        "text_config.rope_parameters.",
        "text_config.rope_scaling.",
        "text_config.",
        "rope_parameters.full_attention.",
        "rope_parameters.",
        "rope_scaling.",
        "",
    };
    return find_first(m, prefixes, sizeof prefixes / sizeof *prefixes, keys);
}

bool heft_gguf_is_text(const heft_value *v, const char *text)
{
    return v->kind == HEFT_KIND_STR && heft_str_is(v->as.s, text);
}

/* ---- numbers ---- */

static double power_of_ten(int64_t exponent)
{
    double value = 1, base = 10;
    for (uint64_t n = (uint64_t)(exponent < 0 ? -exponent : exponent); n; n >>= 1) {
        value *= n & 1 ? base : 1;
        base *= base;
    }
    return value;
}

/* Take the digits at *p, and return how many there are.  Those past the 18th count as zeros. */
static size_t take_digits(const char **p, const char *end, uint64_t *number, int64_t *exponent)
{
    const uint64_t most = UINT64_C(100000000000000000);
    size_t count = 0;
    for (; *p < end && **p >= '0' && **p <= '9'; (*p)++, count++) {
        if (*number < most)
            *number = *number * 10 + (uint64_t)(**p - '0');
        else
            (*exponent)++;
    }
    return count;
}

/* Read the exponent of a number at *p, "e-5". */
static int64_t take_exponent(const char **p, const char *end)
{
    uint64_t number = 0;
    int64_t unused = 0;
    if (*p == end || (**p != 'e' && **p != 'E'))
        return 0;
    (*p)++;
    bool negative = *p < end && **p == '-';
    *p += *p < end && (**p == '-' || **p == '+');
    take_digits(p, end, &number, &unused);
    number = number < 1000 ? number : 1000;
    return negative ? -(int64_t)number : (int64_t)number;
}

/* Settings keep the spelling of a number with a fraction.  At most the last bit of the double is
 * inexact: GGUF keeps f32. */
static bool read_decimal(double *out, heft_str text)
{
    const char *p = text.ptr, *end = text.ptr + text.len;
    bool negative = p < end && *p == '-';
    uint64_t number = 0;
    int64_t exponent = 0, unused = 0;
    p += negative;

    size_t digits = take_digits(&p, end, &number, &exponent);
    if (p < end && *p == '.') {
        p++;
        uint64_t before = exponent > 0;
        size_t fraction = take_digits(&p, end, &number, before ? &unused : &exponent);
        exponent -= before ? 0 : (int64_t)fraction;
        digits += fraction;
    }
    exponent += take_exponent(&p, end);
    if (!digits || p != end || exponent > 300 || exponent < -300)
        return false;

    double power = power_of_ten(exponent), value = (double)number;
    value = exponent < 0 ? value / power : value * power;
    *out = negative ? -value : value;
    return true;
}

bool heft_gguf_number(double *out, const heft_value *v)
{
    if (v->kind == HEFT_KIND_INT)
        *out = (double)v->as.i;
    else if (v->kind == HEFT_KIND_UINT)
        *out = (double)v->as.u;
    else
        return v->kind == HEFT_KIND_STR && read_decimal(out, v->as.s);
    return true;
}
