/* quantisation_settings.c - finds the quantisation in the values of config.json,
 * quantize_config.json or hf_quant_config.json. */
#include "scheme/quantisation_settings.h"

#include <heft/companion.h>
#include <heft/private.h>
#include <heft/scheme.h>

#include "base/out.h"
#include "base/text.h"

/* Find the value at PREFIX.KEY. */
static bool find(heft_value *out, const heft_settings *s, const char *prefix, const char *key)
{
    enum { LONGEST = 96 };
    uint8_t buf[LONGEST];
    heft_out path = { .buf = buf, .cap = sizeof buf };
    heft_out_str(&path, heft_lit(prefix));
    heft_out_str(&path, heft_lit(key));
    uint32_t at = heft_settings_find_path(s, (heft_str){ (const char *)buf, path.len });
    if (at != HEFT_NONE)
        *out = heft_settings_value_at(s, at);
    return at != HEFT_NONE;
}

static heft_str find_text(const heft_settings *s, const char *prefix, const char *const *keys)
{
    heft_value v;
    for (; *keys; keys++)
        if (find(&v, s, prefix, *keys) && v.kind == HEFT_KIND_STR && v.as.s.len)
            return v.as.s;
    return heft_lit("");
}

/* Find the first of the keys with an integer. */
static bool find_number(int64_t *out, const heft_settings *s, const char *prefix,
                        const char *const *keys)
{
    heft_value v;
    for (; *keys; keys++)
        if (find(&v, s, prefix, *keys) && v.kind == HEFT_KIND_INT) {
            *out = v.as.i;
            return true;
        }
    return false;
}

/* Name the method that the keys belong to, where no key names it. */
static heft_str guess_method(const heft_settings *s, const char *prefix)
{
    static const struct {
        const char *key, *method;
    } rows[] = { { "quant_algo", "modelopt" },
                 { "w_bit", "awq" },
                 { "desc_act", "gptq" },
                 { "load_in_4bit", "bitsandbytes" },
                 { "load_in_8bit", "bitsandbytes" } };
    heft_value v;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (find(&v, s, prefix, rows[i].key))
            return heft_lit(rows[i].method);
    /* MLX names no method in "quantization". */
    bool is_mlx = heft_str_is(heft_lit(prefix), "quantization.") &&
                  find(&v, s, prefix, "group_size");
    return heft_lit(is_mlx ? "mlx" : "");
}

static void read_sizes(heft_quantisation_settings *out, const heft_settings *s, const char *prefix)
{
    enum { MOST_BITS = 64 };
    static const char *const bits[] = { "bits", "w_bit", "config_groups.group_0.weights.num_bits",
                                        NULL };
    static const char *const groups[] = { "group_size", "q_group_size",
                                          "config_groups.group_0.weights.group_size", NULL };
    static const char *const rows[] = { "weight_block_size.0", NULL };
    static const char *const columns[] = { "weight_block_size.1", NULL };
    int64_t n;
    if (find_number(&n, s, prefix, bits) && n > 0 && n <= MOST_BITS)
        out->bits = (uint32_t)n;
    out->has_group = find_number(&n, s, prefix, groups);
    out->group = out->has_group && n > 0 ? (uint64_t)n : 0;
    out->block[0] = find_number(&n, s, prefix, rows) && n > 0 ? (uint64_t)n : 0;
    out->block[1] = find_number(&n, s, prefix, columns) && n > 0 ? (uint64_t)n : 0;
}

void heft_quantisation_settings_read(heft_quantisation_settings *out, const heft_settings *s)
{
    /* The last prefix is that of quantize_config.json, where the keys are at the top level. */
    static const char *const prefixes[] = { "quantization_config.",
                                            "text_config.quantization_config.",
                                            "compression_config.", "quantization.", "" };
    static const char *const methods[] = { "quant_method", NULL };
    static const char *const forms[] = {
        "checkpoint_format", "format", "version", "bnb_4bit_quant_type", "mode", "quant_algo", NULL
    };
    *out = (heft_quantisation_settings){ .bits = 0 };
    for (size_t i = 0; s && i < sizeof prefixes / sizeof *prefixes && !out->method.len; i++) {
        out->method = find_text(s, prefixes[i], methods);
        if (!out->method.len)
            out->method = guess_method(s, prefixes[i]);
        if (!out->method.len)
            continue;
        out->form = find_text(s, prefixes[i], forms);
        read_sizes(out, s, prefixes[i]);
    }
}

bool heft_settings_are_quantised(const heft_settings *s)
{
    heft_quantisation_settings q;
    heft_quantisation_settings_read(&q, s);
    return q.method.len;
}
