/* gguf_config_back.c - makes config.json of the metadata of a GGUF file, by the rules that make the
 * metadata of config.json. */
#include "gguf/gguf_architectures.h"
#include "gguf/gguf_back.h"
#include "gguf/gguf_math.h"

#include "base/error.h"
#include "base/text.h"
#include "grammar/json.h"
#include "model/float.h"
#include "model/values.h"

/* ---- metadata ---- */

bool heft_gguf_find_number(double *out, const heft_gguf_texts *t, const char *key)
{
    char full[128];
    heft_value v;
    heft_str name = heft_lit(t->architecture ? t->architecture->name : ""), rest = heft_lit(key);
    if (name.len + rest.len + 1 > sizeof full)
        return false;
    memcpy(full, name.ptr, name.len);
    full[name.len] = '.';
    memcpy(full + name.len + 1, rest.ptr, rest.len);
    if (!heft_meta_find(&v, t->f, (heft_str){ full, name.len + 1 + rest.len }))
        return false;
    if (v.kind == HEFT_KIND_BOOL)
        *out = v.as.b;
    else if (v.kind == HEFT_KIND_FLOAT)
        *out = v.as.f;
    else
        return v.kind != HEFT_KIND_STR && heft_gguf_number(out, &v);
    return true;
}

/* ---- JSON ---- */

void heft_gguf_put_key(heft_gguf_json *j, const char *key)
{
    heft_out_str(j->out, heft_lit(j->has_members ? ",\n  " : "{\n  "));
    j->has_members = true;
    heft_json_put_str(j->out, heft_lit(key));
    heft_out_str(j->out, heft_lit(": "));
}

/* Return the shortest decimal number that is v as f32, so that 1e-5 comes back as such. */
static double shortest(double v)
{
    double magnitude = v < 0 ? -v : v, scale = 1;
    if (magnitude == 0 || magnitude > 1e15 || magnitude < 1e-15)
        return v;
    for (; magnitude * scale < 1; scale *= 10)
        continue;
    for (int digits = 0; digits < 9; digits++, scale *= 10) {
        double rounded = (double)(int64_t)(v * scale + (v < 0 ? -0.5 : 0.5)) / scale;
        if ((float)rounded == (float)v)
            return rounded;
    }
    return v;
}

static void put_number(heft_gguf_json *j, double v, heft_gguf_rule_type type)
{
    char text[HEFT_F64_TEXT];
    if (type == HEFT_RULE_BOOL)
        heft_out_str(j->out, heft_lit(v != 0 ? "true" : "false"));
    else if (type == HEFT_RULE_U32)
        heft_json_put_u64(j->out, (uint64_t)v);
    else
        heft_out_bytes(j->out, text, heft_f64_text(text, shortest(v)));
}

static void put_setting(heft_gguf_json *j, const char *key, double v, heft_gguf_rule_type type)
{
    heft_gguf_put_key(j, key);
    put_number(j, v, type);
}

/* ---- rules, backwards ---- */

/* Return the first path of a rule, if it is a name at the top level. */
static bool first_name(char out[64], const char *paths)
{
    size_t len = 0;
    while (paths[len] && paths[len] != '|') {
        if (paths[len] == '.' || paths[len] == '=' || len == 63)
            return false;
        out[len] = paths[len];
        len++;
    }
    out[len] = 0;
    return len;
}

/* Return whether an earlier rule has made the setting. */
static bool is_made(const heft_gguf_architecture *a, const heft_gguf_rule *until, const char *name)
{
    char earlier[64];
    for (int set = 0; set < HEFT_GGUF_RULE_SETS; set++)
        for (const heft_gguf_rule *r = a->rules[set]; r && r->key; r++) {
            if (r == until)
                return false;
            if (first_name(earlier, r->from) && heft_str_is(heft_lit(earlier), name))
                return true;
        }
    return false;
}

static heft_status put_rule(heft_gguf_json *j, const heft_gguf_rule *rule)
{
    char name[64];
    double v;
    if (!first_name(name, rule->from) || is_made(j->t->architecture, rule, name))
        return HEFT_OK;
    bool is_known = heft_gguf_find_number(&v, j->t, rule->key);
    if (is_known && v == 0 && heft_str_is(heft_lit(name), "sliding_window")) {
        heft_gguf_put_key(j, name);
        heft_out_str(j->out, heft_lit("null"));
    } else if (is_known)
        put_setting(j, name, v, rule->type);
    else if (rule->absence == HEFT_RULE_NEEDED)
        return heft_error_plain(j->t->err, HEFT_E_FORMAT, "the metadata lack %s.%s",
                                j->t->architecture->name, rule->key);
    return HEFT_OK;
}

/* Settings that llama.cpp does not read have the value that it computes. */
static void put_fixed(heft_gguf_json *j, const heft_gguf_fixed *fixed)
{
    char name[64], value[64];
    if (!first_name(name, fixed->from) || !first_name(value, fixed->values) ||
        heft_gguf_is_among(heft_lit("null"), fixed->values))
        return;
    heft_gguf_put_key(j, name);
    if (heft_gguf_is_among(heft_lit(value), "true|false|0|1"))
        heft_out_str(j->out, heft_lit(value));
    else
        heft_json_put_str(j->out, heft_lit(value));
}

/* ---- the rotary embedding ---- */

static void put_text(heft_gguf_json *j, const char *key, const char *text)
{
    heft_gguf_put_key(j, key);
    heft_json_put_str(j->out, heft_lit(text));
}

/* Read a tensor of f32; NULL: there is none of that name. */
static heft_status read_factors(float **out, uint32_t *count, heft_gguf_texts *t, const char *name)
{
    uint32_t i = heft_tensor_find(t->f, heft_lit(name));
    *out = NULL;
    if (i == HEFT_NONE)
        return HEFT_OK;
    heft_tensor tensor = heft_tensor_at(t->f, i);
    if (tensor.rank != 1 || tensor.dtype != HEFT_F32 || !tensor.dims[0] || tensor.dims[0] > 1 << 16)
        return heft_error_plain(t->err, HEFT_E_FORMAT, "tensor %q is not a vector of f32",
                                heft_lit(name));
    *count = (uint32_t)tensor.dims[0];
    *out = heft_arena_alloc(&t->arena, (size_t)*count * sizeof **out, sizeof **out);
    if (!*out)
        return heft_error_no_memory(t->err, "for rotary factors");
    HEFT_TRY(heft_part_read(*out, t->f, tensor.first_part, 0, *count * sizeof **out, t->err));
    heft_f32_from_little(*out, *count);
    return HEFT_OK;
}

/* The tensor has factors, config.json what they are made of.  All published models have the same
 * numbers but for the factor, which is that of the slowest wave. */
static heft_status put_llama3(heft_gguf_json *j, const float *factors, uint32_t count)
{
    heft_gguf_stretching s = { 10000, factors[count - 1], 1, 4, 8192 };
    heft_gguf_json inner = { j->t, j->out, false };
    float *made = heft_arena_alloc(&j->t->arena, (size_t)count * sizeof *made, sizeof *made);
    heft_gguf_find_number(&s.base, j->t, "rope.freq_base");
    if (!made)
        return heft_error_no_memory(j->t->err, "for rotary factors");
    heft_gguf_stretch(made, count, &s);
    for (uint32_t i = 0; i < count; i++) {
        float difference = made[i] - factors[i];
        if (!(difference < 1e-3F * factors[i] && difference > -1e-3F * factors[i]))
            return heft_error_plain(
                j->t->err, HEFT_E_UNSUPPORTED,
                "the rotary scaling in rope_freqs.weight is not that of Llama 3");
    }
    heft_gguf_put_key(j, "rope_scaling");
    put_text(&inner, "rope_type", "llama3");
    put_setting(&inner, "factor", s.factor, HEFT_RULE_F32);
    put_setting(&inner, "low_freq_factor", s.low, HEFT_RULE_F32);
    put_setting(&inner, "high_freq_factor", s.high, HEFT_RULE_F32);
    put_setting(&inner, "original_max_position_embeddings", s.length, HEFT_RULE_U32);
    heft_out_str(j->out, heft_lit("}"));
    return HEFT_OK;
}

static void put_factors(heft_gguf_json *j, const char *key, const float *factors, uint32_t count)
{
    heft_gguf_put_key(j, key);
    for (uint32_t i = 0; i < count; i++) {
        heft_out_str(j->out, heft_lit(i ? ", " : "["));
        put_number(j, factors[i], HEFT_RULE_F32);
    }
    heft_out_str(j->out, heft_lit("]"));
}

/* transformers allows these three settings only; the original length is at the top level. */
static heft_status put_longrope(heft_gguf_json *j)
{
    heft_gguf_json inner = { j->t, j->out, false };
    float *longer, *shorter;
    uint32_t count, same;
    double v;
    HEFT_TRY(read_factors(&longer, &count, j->t, "rope_factors_long.weight"));
    HEFT_TRY(read_factors(&shorter, &same, j->t, "rope_factors_short.weight"));
    if (!longer || !shorter)
        return heft_error_plain(j->t->err, HEFT_E_FORMAT,
                                "the rotary scaling longrope lacks the tensors of its factors");
    if (heft_gguf_find_number(&v, j->t, "rope.scaling.original_context_length"))
        put_setting(j, "original_max_position_embeddings", v, HEFT_RULE_U32);
    heft_gguf_put_key(j, "rope_scaling");
    put_text(&inner, "type", "longrope");
    put_factors(&inner, "long_factor", longer, count);
    put_factors(&inner, "short_factor", shorter, same);
    heft_out_str(j->out, heft_lit("}"));
    return HEFT_OK;
}

static void put_scaling(heft_gguf_json *j, heft_str type)
{
    static const char *const numbers[][2] = {
        { "rope.scaling.factor", "factor" },
        { "rope.scaling.yarn_ext_factor", "extrapolation_factor" },
        { "rope.scaling.yarn_beta_fast", "beta_fast" },
        { "rope.scaling.yarn_beta_slow", "beta_slow" },
    };
    heft_gguf_json inner = { j->t, j->out, false };
    double v;
    heft_gguf_put_key(j, "rope_scaling");
    heft_gguf_put_key(&inner, "rope_type");
    heft_json_put_str(j->out, type);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (heft_gguf_find_number(&v, j->t, numbers[i][0]))
            put_setting(&inner, numbers[i][1], v, HEFT_RULE_F32);
    double factor;
    if (heft_str_is(type, "yarn") && heft_gguf_find_number(&v, j->t, "rope.scaling.attn_factor") &&
        heft_gguf_find_number(&factor, j->t, "rope.scaling.factor"))
        put_setting(&inner, "attention_factor", v * heft_gguf_yarn_scale(factor), HEFT_RULE_F32);
    if (heft_gguf_find_number(&v, j->t, "rope.scaling.yarn_log_multiplier"))
        put_setting(&inner, "mscale_all_dim", v * 10, HEFT_RULE_F32);
    if (heft_gguf_find_number(&v, j->t, "rope.scaling.original_context_length"))
        put_setting(&inner, "original_max_position_embeddings", v, HEFT_RULE_U32);
    heft_out_str(j->out, heft_lit("}"));
}

static heft_status put_rope(heft_gguf_json *j)
{
    double v;
    float *factors;
    uint32_t count;
    heft_value type;
    heft_str key = heft_arena_join(&j->t->arena, heft_lit(j->t->architecture->name), heft_lit("."),
                                   heft_lit("rope.scaling.type"));
    if (heft_gguf_find_number(&v, j->t, "rope.freq_base"))
        put_setting(j, "rope_theta", v, HEFT_RULE_F32);
    HEFT_TRY(read_factors(&factors, &count, j->t, "rope_freqs.weight"));
    if (factors)
        return put_llama3(j, factors, count);
    bool is_scaled = key.ptr && heft_meta_find(&type, j->t->f, key) && type.kind == HEFT_KIND_STR;
    if (is_scaled && heft_str_is(type.as.s, "longrope"))
        return put_longrope(j);
    if (is_scaled && !heft_str_is(type.as.s, "none"))
        put_scaling(j, type.as.s);
    return HEFT_OK;
}

/* ---- settings that are computed from several keys ---- */

/* Part of a head is rotated in some models. */
static void put_rotated(heft_gguf_json *j)
{
    double rotated, head, width, heads;
    bool is_latent = heft_gguf_find_number(&rotated, j->t, "attention.key_length_mla");
    if (is_latent || !heft_gguf_find_number(&rotated, j->t, "rope.dimension_count"))
        return;
    if (!heft_gguf_find_number(&head, j->t, "attention.key_length")) {
        if (!heft_gguf_find_number(&width, j->t, "embedding_length") ||
            !heft_gguf_find_number(&heads, j->t, "attention.head_count") || heads < 1)
            return;
        head = width / heads;
    }
    if (head > 0 && rotated != head)
        put_setting(j, "partial_rotary_factor", rotated / head, HEFT_RULE_F32);
}

static void put_latent(heft_gguf_json *j)
{
    enum { SIGMOID = 2 };
    double key, rotated, heads, gating;
    if (!heft_gguf_find_number(&key, j->t, "attention.key_length_mla") ||
        !heft_gguf_find_number(&rotated, j->t, "rope.dimension_count") ||
        !heft_gguf_find_number(&heads, j->t, "attention.head_count"))
        return;
    put_setting(j, "qk_nope_head_dim", key - rotated, HEFT_RULE_U32);
    put_setting(j, "num_key_value_heads", heads, HEFT_RULE_U32);
    if (heft_gguf_find_number(&gating, j->t, "expert_gating_func"))
        put_text(j, "scoring_func", gating == SIGMOID ? "sigmoid" : "softmax");
}

static void put_identity(heft_gguf_json *j)
{
    char model_type[64];
    const heft_gguf_architecture *a = j->t->architecture;
    if (!first_name(model_type, a->model_types))
        return;
    heft_gguf_put_key(j, "architectures");
    heft_out_str(j->out, heft_lit("["));
    heft_json_put_str(j->out, heft_lit(a->class_name));
    heft_out_str(j->out, heft_lit("]"));
    put_text(j, "model_type", model_type);
    heft_gguf_put_key(j, "tie_word_embeddings");
    bool is_tied = heft_tensor_find(j->t->f, heft_lit("output.weight")) == HEFT_NONE;
    heft_out_str(j->out, heft_lit(is_tied ? "true" : "false"));
}

static heft_status put_vocab_size(heft_gguf_json *j)
{
    uint32_t i = heft_tensor_find(j->t->f, heft_lit("token_embd.weight"));
    if (i == HEFT_NONE || heft_tensor_at(j->t->f, i).rank != 2)
        return heft_error_plain(j->t->err, HEFT_E_FORMAT, "there is no tensor token_embd.weight");
    put_setting(j, "vocab_size", (double)heft_tensor_at(j->t->f, i).dims[0], HEFT_RULE_U32);
    return HEFT_OK;
}

/* The metadata have ids of special tokens, which config.json has, too. */
static void put_ids(heft_gguf_json *j)
{
    static const char *const ids[][2] = { { "tokenizer.ggml.bos_token_id", "bos_token_id" },
                                          { "tokenizer.ggml.eos_token_id", "eos_token_id" },
                                          { "tokenizer.ggml.padding_token_id", "pad_token_id" } };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        heft_value v;
        double id;
        if (heft_meta_find(&v, j->t->f, heft_lit(ids[i][0])) && heft_gguf_number(&id, &v))
            put_setting(j, ids[i][1], id, HEFT_RULE_U32);
    }
}

/* One name stands for several model types: experts and their scores tell them apart. */
static heft_status choose_architecture(heft_gguf_texts *t)
{
    enum { SIGMOID = 2 };
    heft_value v;
    double number;
    const heft_gguf_architecture *a;
    if (!heft_meta_find(&v, t->f, heft_lit("general.architecture")) || v.kind != HEFT_KIND_STR)
        return heft_error_plain(t->err, HEFT_E_UNSUPPORTED,
                                "the metadata lack general.architecture");
    for (uint32_t i = 0; (a = heft_gguf_architecture_at(i)); i++) {
        if (!heft_str_is(v.as.s, a->name))
            continue;
        bool is_first = !t->architecture;
        t->architecture = is_first ? a : t->architecture;
        bool is_mixtral = heft_gguf_find_number(&number, t, "expert_count") && number > 0 &&
                          heft_str_is(heft_lit(a->model_types), "mixtral");
        bool is_v3 = heft_gguf_find_number(&number, t, "expert_gating_func") && number == SIGMOID;
        if (is_mixtral || (is_v3 && !is_first))
            t->architecture = a;
    }
    if (!t->architecture)
        return heft_error_plain(t->err, HEFT_E_UNSUPPORTED,
                                "a config.json for the architecture %q is not known", v.as.s);
    return HEFT_OK;
}

heft_status heft_gguf_put_config(heft_gguf_texts *t, heft_out *out)
{
    heft_gguf_json j = { t, out, false };
    if (!t->architecture)
        HEFT_TRY(choose_architecture(t));
    put_identity(&j);
    for (int set = 0; set < HEFT_GGUF_RULE_SETS; set++) {
        const heft_gguf_rule *rule = t->architecture->rules[set];
        const heft_gguf_fixed *fixed = t->architecture->fixed[set];
        for (; rule && rule->key; rule++)
            HEFT_TRY(put_rule(&j, rule));
        for (; fixed && fixed->from; fixed++)
            put_fixed(&j, fixed);
    }
    put_rotated(&j);
    put_latent(&j);
    HEFT_TRY(put_vocab_size(&j));
    put_ids(&j);
    HEFT_TRY(put_rope(&j));
    heft_out_str(out, heft_lit("\n}\n"));
    return HEFT_OK;
}
