/* gguf_rope.c - how long texts stretch the rotary embedding: keys, and tensors with factors. */
#include "gguf/gguf_architectures.h"
#include "gguf/gguf_build.h"
#include "gguf/gguf_math.h"

#include "base/error.h"
#include "base/text.h"

static double rope_number(const heft_gguf_metadata *m, const char *keys, double otherwise)
{
    heft_value v = heft_gguf_rope(m, keys);
    double number;
    return heft_gguf_number(&number, &v) ? number : otherwise;
}

static heft_str full_key(heft_gguf_metadata *m, const char *key)
{
    return heft_arena_join(&m->arena, heft_lit(m->architecture->name), heft_lit(".rope.scaling."),
                           heft_lit(key));
}

static heft_status need(double *out, heft_gguf_metadata *m, const char *keys)
{
    heft_value v = heft_gguf_rope(m, keys);
    if (heft_gguf_number(out, &v) && *out > 0 && *out < UINT32_MAX)
        return HEFT_OK;
    return heft_error_plain(m->err, HEFT_E_FORMAT,
                            "config.json: the rotary scaling lacks a positive %s", keys);
}

/* Return the rotated elements of a head, which the rules have found; 0: unknown. */
static uint32_t rotated(const heft_gguf_metadata *m)
{
    double dim, heads;
    heft_value v = heft_gguf_config(m, "head_dim|hidden_size"), n;
    n = heft_gguf_config(m, "num_attention_heads");
    if (!heft_gguf_number(&dim, &v) || !heft_gguf_number(&heads, &n) || heads < 1)
        return 0;
    if (heft_gguf_config(m, "head_dim").kind == HEFT_KIND_NULL)
        dim /= heads;
    dim *= rope_number(m, "partial_rotary_factor", m->architecture->rotary_factor);
    return dim >= 2 && dim < 1 << 16 ? (uint32_t)dim : 0;
}

/* ---- kinds of scaling ---- */

static heft_status linear(heft_gguf_metadata *m)
{
    double factor;
    HEFT_TRY(need(&factor, m, "factor"));
    heft_gguf_add(m, heft_value_str(full_key(m, "type"), heft_lit("linear")));
    heft_gguf_add_f32(m, full_key(m, "factor"), factor);
    return HEFT_OK;
}

/* llama.cpp has one number for both, and none for the factor that their quotient makes. */
static heft_status check_mscale(heft_gguf_metadata *m)
{
    double all = rope_number(m, "mscale_all_dim", 0);
    bool is_read = heft_str_is(heft_lit(m->architecture->name), "deepseek2");
    if (!is_read || (all != 0 && rope_number(m, "mscale", 1) == all))
        return HEFT_OK;
    return heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                            "config.json: 'mscale' and 'mscale_all_dim' are not one number, as "
                            "llama.cpp computes for %s",
                            m->architecture->name);
}

/* transformers multiplies rotated numbers by attention_factor, llama.cpp by attn_factor and by
 * heft_gguf_yarn_scale().  The authors of YaRN have attn_factor in the sense of llama.cpp. */
static heft_status yarn_attention(heft_gguf_metadata *m, double factor)
{
    const double most = 3.4e38; /* of f32 */
    heft_value v = heft_gguf_rope(m, "attention_factor|attn_factor");
    double own = 0, usual = heft_gguf_yarn_scale(factor);
    bool is_whole = heft_gguf_rope(m, "attention_factor").kind != HEFT_KIND_NULL;
    bool is_latent = heft_str_is(heft_lit(m->architecture->name), "deepseek2");
    if (v.kind == HEFT_KIND_NULL)
        return HEFT_OK;
    if (!heft_gguf_number(&own, &v) || !(own > 0 && own < most) || usual <= 0)
        return heft_error_plain(m->err, HEFT_E_FORMAT,
                                "config.json: the rotary scaling yarn has impossible numbers");
    if (is_latent && !(is_whole && own == 1))
        return heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                                "config.json: 'attention_factor' is not 1, but llama.cpp computes "
                                "it by 'mscale_all_dim' for %s",
                                m->architecture->name);
    if (!is_latent)
        heft_gguf_add_f32(m, full_key(m, "attn_factor"), is_whole ? own / usual : own);
    return HEFT_OK;
}

static heft_status yarn(heft_gguf_metadata *m)
{
    static const char *const numbers[][2] = {
        { "yarn_ext_factor", "extrapolation_factor" },
        { "yarn_beta_fast", "beta_fast" },
        { "yarn_beta_slow", "beta_slow" },
    };
    double factor, length, number;
    HEFT_TRY(need(&factor, m, "factor"));
    HEFT_TRY(need(&length, m, "original_max_position_embeddings"));
    HEFT_TRY(check_mscale(m));
    HEFT_TRY(yarn_attention(m, factor));
    heft_value truncates = heft_gguf_rope(m, "truncate");
    if (truncates.kind == HEFT_KIND_BOOL && !truncates.as.b)
        heft_gguf_note(m,
                       "llama.cpp rounds the limits of YaRN, which 'truncate' in %q asks not to do",
                       heft_lit("config.json"));
    heft_gguf_add(m, heft_value_str(full_key(m, "type"), heft_lit("yarn")));
    heft_gguf_add_f32(m, full_key(m, "factor"), factor);
    heft_gguf_add_u32(m, full_key(m, "original_context_length"), (uint64_t)length);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        heft_value v = heft_gguf_rope(m, numbers[i][1]);
        if (heft_gguf_number(&number, &v))
            heft_gguf_add_f32(m, full_key(m, numbers[i][0]), number);
    }
    return HEFT_OK;
}

void heft_gguf_stretch(float *out, uint32_t count, const heft_gguf_stretching *s)
{
    const double two_pi = 6.28318530717958647693;
    for (uint32_t i = 0; i < count; i++) {
        double wave = two_pi * heft_exp(heft_ln(s->base) * i / count);
        double smooth = (s->length / wave - s->low) / (s->high - s->low);
        smooth = smooth < 0 ? 0 : smooth > 1 ? 1 : smooth;
        out[i] = (float)(1 / ((1 - smooth) / s->factor + smooth));
    }
}

static heft_status llama3(heft_gguf_metadata *m)
{
    heft_gguf_stretching s = { .base = rope_number(m, "rope_theta", 10000) };
    uint32_t dim = rotated(m);
    HEFT_TRY(need(&s.factor, m, "factor"));
    HEFT_TRY(need(&s.length, m, "original_max_position_embeddings|max_position_embeddings"));
    HEFT_TRY(need(&s.low, m, "low_freq_factor"));
    HEFT_TRY(need(&s.high, m, "high_freq_factor"));
    if (!dim || s.low >= s.high || s.base <= 1)
        return heft_error_plain(m->err, HEFT_E_FORMAT,
                                "config.json: the rotary scaling llama3 has impossible numbers");
    float *factors = heft_gguf_add_extra(m, "rope_freqs.weight", dim / 2);
    if (factors)
        heft_gguf_stretch(factors, dim / 2, &s);
    return HEFT_OK;
}

static heft_status read_factors(heft_gguf_metadata *m, const char *key, const char *name)
{
    heft_value list = heft_gguf_rope(m, key);
    uint32_t count = rotated(m) / 2;
    const heft_settings *s = m->json[HEFT_GGUF_CONFIG];
    if (list.kind != HEFT_KIND_LIST || list.as.container.count != count || !count)
        return heft_error_plain(m->err, HEFT_E_FORMAT,
                                "config.json: %s is not a list of %U numbers, one for each pair of "
                                "rotated elements",
                                key, (uint64_t)count);
    float *factors = heft_gguf_add_extra(m, name, count);
    for (uint32_t i = 0; factors && i < count; i++) {
        double number;
        heft_value v = heft_settings_value_at(s, list.as.container.end - count + i);
        if (!heft_gguf_number(&number, &v))
            return heft_error_plain(m->err, HEFT_E_FORMAT,
                                    "config.json: %s has a value that is not "
                                    "a number",
                                    key);
        factors[i] = (float)number;
    }
    return HEFT_OK;
}

static heft_status longrope(heft_gguf_metadata *m)
{
    double length, original;
    HEFT_TRY(need(&length, m, "max_position_embeddings"));
    HEFT_TRY(need(&original, m, "original_max_position_embeddings"));
    double scale = length / original, attention = 1;
    if (scale > 1 && original > 1) /* the square root of 1 + ln(scale) / ln(original) */
        attention = heft_exp(heft_ln(1 + heft_ln(scale) / heft_ln(original)) / 2);
    heft_gguf_add(m, heft_value_str(full_key(m, "type"), heft_lit("longrope")));
    heft_gguf_add_f32(m, full_key(m, "attn_factor"), rope_number(m, "attention_factor", attention));
    HEFT_TRY(read_factors(m, "long_factor", "rope_factors_long.weight"));
    return read_factors(m, "short_factor", "rope_factors_short.weight");
}

static heft_status unscaled(heft_gguf_metadata *m)
{
    (void)m;
    return HEFT_OK;
}

static const struct {
    const char *types;
    heft_status (*read)(heft_gguf_metadata *m);
} kinds[] = {
    { "default", unscaled }, { "linear", linear },        { "yarn", yarn },
    { "llama3", llama3 },    { "longrope|su", longrope },
};

heft_status heft_gguf_read_rope(heft_gguf_metadata *m)
{
    heft_value type = heft_gguf_rope(m, "rope_type|type");
    if (type.kind == HEFT_KIND_NULL)
        return HEFT_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (type.kind == HEFT_KIND_STR && heft_gguf_is_among(type.as.s, kinds[i].types))
            return kinds[i].read(m);
    return heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                            "config.json: llama.cpp knows no rotary scaling %q",
                            type.kind == HEFT_KIND_STR ? type.as.s : heft_lit("of this kind"));
}
