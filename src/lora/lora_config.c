/* lora_config.c - reads adapter_config.json, in which PEFT states what the tensors of an adapter do
 * not: the method, alpha, and which modules have a rank or an alpha of their own. */
#include "base/error.h"
#include "base/text.h"
#include "lora/merging.h"

/* ---- values ---- */

/* Read a decimal number whose digits and power of ten are exact in f64. */
static bool read_decimal(double *out, heft_str s)
{
    enum { MOST_POWER = 22 };
    const double exact = 9007199254740992.0; /* 2^53 */
    double digits = 0, power = 1;
    size_t i = s.len && *s.ptr == '-';
    bool has_digits = false, is_negative = i, has_point = false;
    int32_t scale = 0;
    for (; i < s.len && ((s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] == '.' && !has_point));
         i++) {
        if (s.ptr[i] == '.') {
            has_point = true;
            continue;
        }
        has_digits = true;
        digits = digits * 10 + (double)(s.ptr[i] - '0');
        scale -= has_point;
    }
    if (i < s.len && (s.ptr[i] == 'e' || s.ptr[i] == 'E')) {
        bool is_below = ++i < s.len && s.ptr[i] == '-';
        int32_t e = 0;
        for (i += is_below || (i < s.len && s.ptr[i] == '+');
             i < s.len && e < 1000 && s.ptr[i] >= '0' && s.ptr[i] <= '9'; i++)
            e = e * 10 + (s.ptr[i] - '0');
        scale += is_below ? -e : e;
    }
    if (!has_digits || i < s.len || digits > exact || scale > MOST_POWER || scale < -MOST_POWER)
        return false;
    for (int32_t k = scale < 0 ? -scale : scale; k; k--)
        power *= 10;
    digits = scale < 0 ? digits / power : digits * power;
    *out = is_negative ? -digits : digits;
    return true;
}

static bool number_of(double *out, const heft_value *v)
{
    *out = v->kind == HEFT_KIND_INT ? (double)v->as.i : (double)v->as.u;
    if (v->kind == HEFT_KIND_STR)
        return read_decimal(out, v->as.s);
    return v->kind == HEFT_KIND_INT || v->kind == HEFT_KIND_UINT;
}

static heft_status find_number(double *out, bool *is_there, const heft_settings *s, const char *key,
                               heft_error *err)
{
    heft_value v;
    *is_there = heft_settings_find(&v, s, heft_lit(key));
    if (!*is_there || number_of(out, &v))
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_FORMAT, "adapter_config.json: %q is not a number",
                            heft_lit(key));
}

static heft_status find_bool(bool *out, const heft_settings *s, const char *key, heft_error *err)
{
    heft_value v;
    *out = false;
    if (!heft_settings_find(&v, s, heft_lit(key)))
        return HEFT_OK;
    *out = v.kind == HEFT_KIND_BOOL && v.as.b;
    if (v.kind == HEFT_KIND_BOOL)
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_FORMAT, "adapter_config.json: %q is neither true nor false",
                            heft_lit(key));
}

/* ---- patterns ---- */

/* A pattern that is not understood, or a value that is no number, would change the scale. */
static heft_status read_patterns(heft_lora_patterns *p, const heft_settings *s, const char *map,
                                 heft_error *err)
{
    static const char purpose[] = "for patterns";
    uint32_t at = heft_settings_find_path(s, heft_lit(map));
    if (at == HEFT_NONE || heft_settings_value_at(s, at).kind == HEFT_KIND_NULL)
        return HEFT_OK;
    heft_value all = heft_settings_value_at(s, at);
    if (all.kind != HEFT_KIND_MAP)
        return heft_error_plain(err, HEFT_E_FORMAT, "adapter_config.json: %q is not a map",
                                heft_lit(map));
    if (!heft_lora_patterns_reserve(p, (uint32_t)all.as.container.count))
        return heft_error_no_memory(err, purpose);
    for (uint32_t i = at + 1; i < heft_settings_next(s, at); i = heft_settings_next(s, i)) {
        heft_value v = heft_settings_value_at(s, i);
        double n;
        if (!number_of(&n, &v) || !heft_lora_pattern_is_valid(v.key))
            return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                    "adapter_config.json: the pattern %q of %q, or its value, is "
                                    "not understood",
                                    v.key, heft_lit(map));
        if (!heft_lora_patterns_add(p, v.key, n))
            return heft_error_no_memory(err, purpose);
    }
    return HEFT_OK;
}

/* ---- methods ---- */

static bool is_set(const heft_settings *s, const char *key)
{
    uint32_t at = heft_settings_find_path(s, heft_lit(key));
    if (at == HEFT_NONE)
        return false;
    heft_value v = heft_settings_value_at(s, at);
    bool is_container = v.kind == HEFT_KIND_LIST || v.kind == HEFT_KIND_MAP;
    if (is_container)
        return v.as.container.count;
    return v.kind == HEFT_KIND_BOOL ? v.as.b : v.kind != HEFT_KIND_NULL;
}

/* With these settings, W + B @ A is another model than that which PEFT runs. */
static heft_status refuse_variants(const heft_settings *s, heft_error *err)
{
    static const struct {
        const char *key, *what;
    } variants[] = {
        { "layer_replication", "repeats layers of the model" },
        { "alora_invocation_tokens", "acts on the tokens after an invocation only (aLoRA)" },
        { "arrow_config", "chooses between adapters for each token (Arrow)" },
        { "use_qalora", "sums groups of inputs (QALoRA)" },
    };
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (is_set(s, variants[i].key))
            return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                    "adapter_config.json has %q: the adapter %s, which is not "
                                    "merged",
                                    heft_lit(variants[i].key), variants[i].what);
    return HEFT_OK;
}

/* These ways to begin the training change the base, too: B @ A leads from that one. */
static heft_status refuse_other_bases(const heft_settings *s, heft_error *err)
{
    static const char *const methods[] = { "pissa", "olora", "corda", "loftq", "lora_ga" };
    heft_value v;
    if (!heft_settings_find(&v, s, heft_lit("init_lora_weights")) || v.kind != HEFT_KIND_STR)
        return HEFT_OK;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (heft_str_begins(v.as.s, methods[i]))
            return heft_error_plain(
                err, HEFT_E_UNSUPPORTED,
                "adapter_config.json has init_lora_weights %q: the adapter "
                "belongs to a base that was changed before the training. Save "
                "it as a plain LoRA with PEFT, or set init_lora_weights to true "
                "where the model is that base",
                v.as.s);
    return HEFT_OK;
}

/* ---- the document ---- */

/* Read what diffusers writes into the metadata of the file, in JSON. */
static heft_status read_metadata(heft_lora_config *out, const heft_file *f, heft_error *err)
{
    heft_value v;
    bool is_there = heft_meta_find(&v, f, heft_lit("lora_adapter_metadata"));
    if (!is_there || v.kind != HEFT_KIND_STR)
        return HEFT_OK;
    return heft_settings_parse_json(&out->metadata, v.as.s, f->host, err);
}

void heft_lora_config_free(heft_lora_config *c)
{
    heft_settings_close(c->metadata);
    c->metadata = NULL;
    heft_lora_patterns_free(&c->ranks);
    heft_lora_patterns_free(&c->alphas);
}

heft_status heft_lora_config_read(heft_lora_config *out, const heft_lora_adapter *a, heft_memory *m,
                                  uint64_t *work, heft_error *err)
{
    const heft_settings *s = a->config;
    heft_value v;
    heft_lora_patterns none = { .mem = m, .key = &a->f->x.key, .work = work };
    *out = (heft_lora_config){ .settings = s, .work = work, .ranks = none, .alphas = none };
    if (!s)
        return read_metadata(out, a->f, err);
    bool has_type = heft_settings_find(&v, s, heft_lit("peft_type"));
    if (has_type && (v.kind != HEFT_KIND_STR || !heft_str_is(v.as.s, "LORA")))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "the adapter is of the type %q: only LORA is merged",
                                v.kind == HEFT_KIND_STR ? v.as.s : heft_lit("?"));
    HEFT_TRY(refuse_variants(s, err));
    HEFT_TRY(refuse_other_bases(s, err));
    HEFT_TRY(read_patterns(&out->ranks, s, "rank_pattern", err));
    HEFT_TRY(read_patterns(&out->alphas, s, "alpha_pattern", err));
    HEFT_TRY(find_number(&out->rank, &out->has_rank, s, "r", err));
    HEFT_TRY(find_number(&out->alpha, &out->has_alpha, s, "lora_alpha", err));
    HEFT_TRY(find_bool(&out->use_rslora, s, "use_rslora", err));
    HEFT_TRY(find_bool(&out->use_dora, s, "use_dora", err));
    HEFT_TRY(find_bool(&out->fan_in_fan_out, s, "fan_in_fan_out", err));
    if (out->has_alpha)
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_FORMAT,
                            "adapter_config.json has no lora_alpha: the scale is not known");
}

/* Replace the number by that of the first pattern in a map of the metadata that names the
 * module. */
static void find_pattern(double *out, const heft_lora_config *c, const char *map, heft_str module)
{
    const heft_settings *s = c->metadata;
    uint32_t at = heft_settings_find_path(s, heft_lit(map));
    if (at == HEFT_NONE || heft_settings_value_at(s, at).kind != HEFT_KIND_MAP)
        return;
    for (uint32_t i = at + 1; i < heft_settings_next(s, at) && *c->work;
         i = heft_settings_next(s, i)) {
        heft_value v = heft_settings_value_at(s, i);
        double n;
        if (!number_of(&n, &v) || !heft_lora_pattern_names(v.key, module, c->work))
            continue;
        *out = n;
        return;
    }
}

void heft_lora_config_of(const heft_lora_config *c, heft_str module, double *rank, double *alpha)
{
    *rank = c->rank;
    *alpha = c->alpha;
    (void)heft_lora_patterns_find(rank, &c->ranks, module);
    (void)heft_lora_patterns_find(alpha, &c->alphas, module);
}

heft_status heft_lora_config_check(const heft_lora_config *c, heft_error *err)
{
    if (*c->work)
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_LIMIT,
                            "the settings of the adapter have too many patterns with operators to "
                            "compare each with all modules: replace them by names of modules");
}

static void report(heft_lora_patterns *p, const char *map, const heft_lora_modules *modules,
                   const heft_lora_options *o, uint32_t adapter)
{
    const heft_lora_module *m = modules->all.ptr;
    heft_str pattern;
    uint32_t at = 0;
    for (uint32_t i = 0; p->rows.len && i < modules->all.len; i++)
        heft_lora_patterns_mark(p, heft_lora_unwrapped(heft_lora_without_layers(m[i].name)));
    while (*p->work && heft_lora_patterns_unused(&pattern, p, &at))
        o->on_pattern(o->ctx, adapter, map, pattern);
}

void heft_lora_config_report(heft_lora_config *c, const heft_lora_modules *modules,
                             const heft_lora_options *o, uint32_t adapter)
{
    if (!c->settings || !o->on_pattern)
        return;
    report(&c->ranks, "rank_pattern", modules, o, adapter);
    report(&c->alphas, "alpha_pattern", modules, o, adapter);
}

/* Join the component of a module, its name up to the first dot, and a key; ptr NULL: too long. */
static heft_str key_of(char *text, size_t most, heft_str module, const char *key)
{
    heft_str end = heft_lit(key);
    size_t dot = 0;
    while (dot < module.len && module.ptr[dot] != '.')
        dot++;
    if (dot + 1 + end.len > most)
        return (heft_str){ NULL, 0 };
    memcpy(text, module.ptr, dot);
    text[dot] = '.';
    memcpy(text + dot + 1, end.ptr, end.len);
    return (heft_str){ text, dot + 1 + end.len };
}

bool heft_lora_config_in_file(const heft_lora_config *c, const heft_file *f, heft_str module,
                              double *alpha, bool *use_rslora)
{
    enum { LONGEST = 128 };
    char text[LONGEST];
    heft_value v;
    if (heft_meta_find(&v, f, heft_lit("adapter.lora.alpha")) && v.kind == HEFT_KIND_FLOAT) {
        *alpha = v.as.f;
        return true;
    }
    heft_str key = key_of(text, sizeof text, module, "lora_alpha");
    if (!c->metadata || !key.ptr || !heft_settings_find(&v, c->metadata, key) ||
        !number_of(alpha, &v))
        return false;
    key = key_of(text, sizeof text, module, "use_rslora");
    *use_rslora = key.ptr && heft_settings_find(&v, c->metadata, key) && v.kind == HEFT_KIND_BOOL &&
                  v.as.b;
    key = key_of(text, sizeof text - 1, module, "alpha_pattern");
    if (key.ptr) {
        text[key.len] = 0;
        find_pattern(alpha, c, text, module);
    }
    return true;
}
