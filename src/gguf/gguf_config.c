/* gguf_config.c - applies the rules of an architecture to config.json. */
#include "gguf/gguf_architectures.h"
#include "gguf/gguf_build.h"

#include "base/error.h"
#include "base/text.h"

/* ---- values that are computed ---- */

static bool number_at(double *out, const heft_gguf_metadata *m, const char *paths)
{
    heft_value v = heft_gguf_config(m, paths);
    return heft_gguf_number(out, &v);
}

static bool sum_of(double *out, const heft_gguf_metadata *m, const char *a, const char *b)
{
    double other;
    if (!number_at(out, m, a) || !number_at(&other, m, b))
        return false;
    *out += other;
    return true;
}

/* Return the elements of a head that are rotated. */
static bool rotary(double *out, const heft_gguf_metadata *m)
{
    double heads, factor;
    heft_value part = heft_gguf_rope(m, "partial_rotary_factor");
    if (!heft_gguf_number(&factor, &part))
        factor = m->architecture->rotary_factor;
    if (!number_at(out, m, "head_dim")) {
        if (!number_at(out, m, "hidden_size") || !number_at(&heads, m, "num_attention_heads") ||
            heads < 1)
            return false;
        *out /= heads;
    }
    *out = (double)(uint32_t)(*out * factor);
    return true;
}

static bool width4(double *out, const heft_gguf_metadata *m)
{
    bool is_known = number_at(out, m, "n_embd");
    *out *= 4;
    return is_known;
}

static bool zero(double *out, const heft_gguf_metadata *m)
{
    (void)m;
    *out = 0;
    return true;
}

static bool one(double *out, const heft_gguf_metadata *m)
{
    (void)m;
    *out = 1;
    return true;
}

static bool latent_key(double *out, const heft_gguf_metadata *m)
{
    return sum_of(out, m, "kv_lora_rank", "qk_rope_head_dim");
}

static bool key(double *out, const heft_gguf_metadata *m)
{
    return sum_of(out, m, "qk_nope_head_dim", "qk_rope_head_dim");
}

static bool theta(double *out, const heft_gguf_metadata *m)
{
    heft_value v = heft_gguf_rope(m, "rope_theta");
    return heft_gguf_number(out, &v);
}

/* llama.cpp expects a tenth of the setting. */
static bool yarn_log(double *out, const heft_gguf_metadata *m)
{
    heft_value v = heft_gguf_rope(m, "mscale_all_dim");
    bool is_known = heft_gguf_number(out, &v);
    *out *= 0.1;
    return is_known;
}

/* Version 3 of DeepSeek normalises weights and has sigmoids also where config.json does not say
 * so. */
static bool version3(double *out, const heft_gguf_metadata *m)
{
    heft_value type = heft_gguf_config(m, "model_type");
    *out = 1;
    return heft_gguf_is_text(&type, "deepseek_v3");
}

static bool gating(double *out, const heft_gguf_metadata *m)
{
    enum { SOFTMAX = 1, SIGMOID = 2 };
    heft_value v = heft_gguf_config(m, "scoring_func");
    bool is_v3 = version3(out, m);
    *out = heft_gguf_is_text(&v, "sigmoid") || (v.kind == HEFT_KIND_NULL && is_v3) ? SIGMOID
                                                                                   : SOFTMAX;
    return true; /* other functions are refused with the fixed settings */
}

/* Groups of experts limit the choice in version 2 of DeepSeek only if its method says so. */
static bool group_number(double *out, const heft_gguf_metadata *m, const char *path)
{
    heft_value method = heft_gguf_config(m, "topk_method");
    bool is_limited = heft_gguf_is_text(&method, "group_limited_greedy");
    return (version3(out, m) || is_limited) && number_at(out, m, path);
}

static bool groups(double *out, const heft_gguf_metadata *m)
{
    return group_number(out, m, "n_group");
}

static bool groups_used(double *out, const heft_gguf_metadata *m)
{
    return group_number(out, m, "topk_group");
}

static bool pooling(double *out, const heft_gguf_metadata *m)
{
    static const struct {
        const char *flag;
        double number;
    } modes[] = { { "pooling_mode_mean_tokens", 1 },
                  { "pooling_mode_cls_token", 2 },
                  { "pooling_mode_lasttoken", 3 } };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        heft_value v = heft_gguf_setting(m, HEFT_GGUF_POOLING, modes[i].flag);
        *out = modes[i].number;
        if (v.kind == HEFT_KIND_BOOL && v.as.b)
            return true;
    }
    return false;
}

static const struct {
    const char *name;
    bool (*compute)(double *out, const heft_gguf_metadata *m);
    const char *from; /* the setting that is missing if there is no value; NULL: none is needed */
} computed[] = {
    { "=rotary", rotary, "head_dim" },
    { "=width4", width4, NULL },
    { "=no", zero, NULL },
    { "=one", one, NULL },
    { "=theta", theta, NULL },
    { "=key", key, "qk_nope_head_dim" },
    { "=latent_key", latent_key, "qk_rope_head_dim" },
    { "=yarn_log", yarn_log, NULL },
    { "=version3", version3, NULL },
    { "=gating", gating, NULL },
    { "=groups", groups, NULL },
    { "=groups_used", groups_used, NULL },
    { "=pooling", pooling, NULL },
};

static bool compute(double *out, const heft_gguf_metadata *m, const char *name)
{
    *out = 0;
    for (size_t i = 0; i < sizeof computed / sizeof *computed; i++)
        if (heft_str_is(heft_lit(computed[i].name), name))
            return computed[i].compute(out, m);
    return false;
}

/* ---- rules ---- */

/* Return the first of several names, separated by '|', or the setting behind a computed one. */
static heft_str first_of(const char *names)
{
    size_t len = 0;
    for (size_t i = 0; i < sizeof computed / sizeof *computed; i++)
        if (computed[i].from && heft_str_is(heft_lit(computed[i].name), names))
            return heft_lit(computed[i].from);
    while (names[len] && names[len] != '|')
        len++;
    return (heft_str){ names, len };
}

static heft_status fail_value(heft_gguf_metadata *m, const char *from)
{
    return heft_error_plain(m->err, HEFT_E_FORMAT, "config.json: %q is not a number in range",
                            first_of(from));
}

/* Find the value of a rule; *found: there is one. */
static heft_status find_value(double *out, bool *found, heft_gguf_metadata *m,
                              const heft_gguf_rule *rule)
{
    const char *other = rule->from;
    while (*other && *other != '=')
        other++;
    heft_value v = heft_gguf_config(m, rule->from);
    *found = v.kind != HEFT_KIND_NULL;
    if (!*found && *other)
        *found = compute(out, m, other);
    else if (v.kind == HEFT_KIND_BOOL)
        *out = v.as.b;
    else if (*found && !heft_gguf_number(out, &v))
        return fail_value(m, rule->from);
    return HEFT_OK;
}

static heft_status apply_rule(heft_gguf_metadata *m, const heft_gguf_rule *rule)
{
    const char *name = m->architecture->name;
    double value = 0;
    bool found;
    HEFT_TRY(find_value(&value, &found, m, rule));
    if (!found && rule->absence == HEFT_RULE_LEFT_OUT)
        return HEFT_OK;
    if (!found && rule->absence == HEFT_RULE_NEEDED)
        return heft_error_plain(m->err, HEFT_E_FORMAT,
                                "config.json lacks %q, from which the key %s.%s is made",
                                first_of(rule->from), name, rule->key);
    value = found ? value : rule->value;

    heft_str full = heft_arena_join(&m->arena, heft_lit(name), heft_lit("."), heft_lit(rule->key));
    if (rule->type == HEFT_RULE_F32)
        heft_gguf_add_f32(m, full, value);
    else if (value < 0 || value > UINT32_MAX || value != (double)(uint32_t)value)
        return fail_value(m, rule->from);
    else if (rule->type == HEFT_RULE_BOOL)
        heft_gguf_add(m, heft_value_bool(full, value != 0));
    else
        heft_gguf_add_u32(m, full, (uint64_t)value);
    return HEFT_OK;
}

/* Return the spelling of a value in the table of fixed settings. */
static heft_str spell(const heft_value *v, char digits[20])
{
    if (v->kind == HEFT_KIND_BOOL)
        return heft_lit(v->as.b ? "true" : "false");
    if (v->kind == HEFT_KIND_INT && v->as.i >= 0)
        return (heft_str){ digits, heft_u64_text(digits, (uint64_t)v->as.i) };
    return v->kind == HEFT_KIND_STR ? v->as.s : heft_lit("another value");
}

/* Return whether the window of a phi3 is as long as any text of the model, as its authors state it
 * for models that have none. */
static bool covers_texts(const heft_gguf_metadata *m, const heft_value *window)
{
    double wide, longest;
    return heft_str_is(heft_lit(m->architecture->name), "phi3") &&
           heft_gguf_number(&wide, window) && number_at(&longest, m, "max_position_embeddings") &&
           wide >= longest;
}

static heft_status check_fixed(heft_gguf_metadata *m, const heft_gguf_fixed *fixed)
{
    char digits[20];
    heft_value v = heft_gguf_config(m, fixed->from);
    bool is_absent = v.kind == HEFT_KIND_NULL;
    heft_str value = is_absent && fixed->absent ? heft_lit(fixed->absent) : spell(&v, digits);
    if ((is_absent && !fixed->absent) || heft_gguf_is_among(value, fixed->values))
        return HEFT_OK;
    if (fixed->note) {
        if (!covers_texts(m, &v))
            heft_gguf_note(m, fixed->note, heft_lit("config.json"));
        return HEFT_OK;
    }
    return heft_error_plain(
        m->err, HEFT_E_UNSUPPORTED,
        is_absent ? "config.json lacks %q, which is %q then, but llama.cpp computes %q for %s"
                  : "config.json: %q is %q, but llama.cpp computes %q for %s",
        first_of(fixed->from), value, first_of(fixed->values), m->architecture->name);
}

/* ---- the architecture ---- */

static heft_status choose_architecture(heft_gguf_metadata *m)
{
    heft_value type = heft_gguf_config(m, "model_type");
    if (type.kind != HEFT_KIND_STR)
        return heft_error_plain(m->err, HEFT_E_FORMAT, "config.json lacks model_type");
    m->architecture = heft_gguf_architecture_of(type.as.s);
    if (!m->architecture)
        return heft_error_plain(m->err, HEFT_E_UNSUPPORTED,
                                "config.json: the keys of a GGUF file for model_type %q are not "
                                "known",
                                type.as.s);
    return HEFT_OK;
}

static void add_general(heft_gguf_metadata *m)
{
    heft_gguf_add_str(m, "general.architecture", heft_lit(m->architecture->name));
    heft_gguf_add_str(m, "general.type", heft_lit("model"));
    if (m->opt.name.len)
        heft_gguf_add_str(m, "general.name", m->opt.name);
    if (m->opt.file_type != HEFT_NONE)
        heft_gguf_add_u32(m, heft_lit("general.file_type"), m->opt.file_type);
}

heft_status heft_gguf_read_config(heft_gguf_metadata *m)
{
    HEFT_TRY(choose_architecture(m));
    add_general(m);
    for (int set = 0; set < HEFT_GGUF_RULE_SETS; set++) {
        const heft_gguf_rule *rule = m->architecture->rules[set];
        const heft_gguf_fixed *fixed = m->architecture->fixed[set];
        for (; rule && rule->key; rule++)
            HEFT_TRY(apply_rule(m, rule));
        for (; fixed && fixed->from; fixed++)
            HEFT_TRY(check_fixed(m, fixed));
    }
    HEFT_TRY(heft_gguf_check_computed(m));
    return heft_gguf_read_rope(m);
}
