/* lora_names.c - the names that PEFT, diffusers, kohya's scripts and ComfyUI give to the tensors of
 * adapters.
 *
 *   PEFT       base_model.model.MODULE.lora_A.weight, lora_B; lora_embedding_A without ".weight"
 *   diffusers  unet.MODULE.lora_A.weight; in old files MODULE.processor.to_q_lora.down.weight
 *   kohya      lora_unet_MODULE.lora_down.weight, lora_up, alpha, with underscores for dots
 *   llama.cpp  blk.0.attn_q.weight.lora_a, lora_b, in GGUF
 *   ComfyUI    diffusion_model.MODULE.lora_down.weight, and all of the above */
#include "lora/lora_names.h"

#include "base/text.h"

typedef struct suffix {
    const char *text;
    heft_lora_role role;
    const char *what;
} suffix;

/* Longer suffixes come before those with which they end. */
static const suffix suffixes[] = {
    { ".lora_A.default.weight", HEFT_LORA_DOWN, NULL },
    { ".lora_B.default.weight", HEFT_LORA_UP, NULL },
    { ".lora_B.default.bias", HEFT_LORA_UP_BIAS, NULL },
    { ".lora_A.weight", HEFT_LORA_DOWN, NULL },
    { ".lora_B.weight", HEFT_LORA_UP, NULL },
    { ".lora_B.bias", HEFT_LORA_UP_BIAS, NULL },
    { ".lora_embedding_A.default", HEFT_LORA_EMBEDDING_DOWN, NULL },
    { ".lora_embedding_B.default", HEFT_LORA_EMBEDDING_UP, NULL },
    { ".lora_embedding_A", HEFT_LORA_EMBEDDING_DOWN, NULL },
    { ".lora_embedding_B", HEFT_LORA_EMBEDDING_UP, NULL },
    { ".lora_magnitude_vector.default.weight", HEFT_LORA_MAGNITUDE, NULL },
    { ".lora_magnitude_vector.default", HEFT_LORA_MAGNITUDE, NULL },
    { ".lora_magnitude_vector.weight", HEFT_LORA_MAGNITUDE, NULL },
    { ".lora_magnitude_vector", HEFT_LORA_MAGNITUDE, NULL },
    { ".weight.lora_a", HEFT_LORA_DOWN, NULL },
    { ".weight.lora_b", HEFT_LORA_UP, NULL },
    { ".lora_down.weight", HEFT_LORA_DOWN, NULL },
    { ".lora_up.weight", HEFT_LORA_UP, NULL },
    { ".lora_mid.weight", HEFT_LORA_MID, NULL },
    { ".lora_linear_layer.down.weight", HEFT_LORA_DOWN, NULL },
    { ".lora_linear_layer.up.weight", HEFT_LORA_UP, NULL },
    { ".lora.down.weight", HEFT_LORA_DOWN, NULL },
    { ".lora.up.weight", HEFT_LORA_UP, NULL },
    { "_lora.down.weight", HEFT_LORA_DOWN, NULL },
    { "_lora.up.weight", HEFT_LORA_UP, NULL },
    { ".alpha", HEFT_LORA_ALPHA, NULL },
    { ".dora_scale", HEFT_LORA_MAGNITUDE, NULL },
    { ".diff", HEFT_LORA_DIFFERENCE, NULL },
    { ".hada_w1_a", HEFT_LORA_FOREIGN, "LoHa" },
    { ".hada_w1_b", HEFT_LORA_FOREIGN, "LoHa" },
    { ".hada_w2_a", HEFT_LORA_FOREIGN, "LoHa" },
    { ".hada_w2_b", HEFT_LORA_FOREIGN, "LoHa" },
    { ".lokr_w1", HEFT_LORA_FOREIGN, "LoKr" },
    { ".lokr_w2", HEFT_LORA_FOREIGN, "LoKr" },
    { ".lokr_w1_a", HEFT_LORA_FOREIGN, "LoKr" },
    { ".lokr_w2_a", HEFT_LORA_FOREIGN, "LoKr" },
    { ".oft_blocks", HEFT_LORA_FOREIGN, "OFT" },
    { ".oft_r.weight", HEFT_LORA_FOREIGN, "OFT" },
    { ".diff_b", HEFT_LORA_FOREIGN, "a difference of a bias" },
    { ".set_weight", HEFT_LORA_FOREIGN, "a weight that is set" },
    { ".scalar", HEFT_LORA_FOREIGN, "LyCORIS with a factor that is learned" },
    { ".reshape_weight", HEFT_LORA_FOREIGN, "a weight that gets another shape" },
    { ".lora_ia3_l", HEFT_LORA_FOREIGN, "IA3" },
    { ".ia3_l", HEFT_LORA_FOREIGN, "IA3" },
    { ".vera_lambda_b", HEFT_LORA_FOREIGN, "VeRA" },
    { ".vera_lambda_d", HEFT_LORA_FOREIGN, "VeRA" },
};

static const heft_lora_prefix prefixes[] = {
    { "", "" },
    { "model.", "" },
    { "", "model." },
    { "transformer.", "" },
    { "", "transformer." },
    { "model.", "model.language_model." },
    { "model.", "language_model.model." },
    { "model.language_model.", "model." },
    { "language_model.", "" },
    { "", "language_model." },
    { "unet.", "" },
    { "", "unet." },
    { "diffusion_model.", "" },
    { "diffusion_model.", "model.diffusion_model." },
    { "diffusion_model.", "transformer." },
    { "transformer.", "model.diffusion_model." },
    { "text_encoder.", "" },
    { NULL, NULL },
};

static const heft_lora_prefix flat_prefixes[] = {
    { "lora_unet_", "" },
    { "lora_unet_", "model_diffusion_model_" },
    { "lora_unet_", "diffusion_model_" },
    { "lora_unet_", "unet_" },
    { "lora_unet_", "transformer_" },
    { "lora_prior_unet_", "" },
    { "lora_prior_unet_", "prior_" },
    { "lora_transformer_", "" },
    { "lora_transformer_", "transformer_" },
    { "lycoris_", "" },
    { "lycoris_", "model_diffusion_model_" },
    { "lycoris_", "transformer_" },
    { "lycoris_", "unet_" },
    { "lora_te_", "" },
    { "lora_te_", "text_encoder_" },
    { "lora_te_", "cond_stage_model_transformer_" },
    { "lora_te1_", "" },
    { "lora_te1_", "text_encoder_" },
    { "lora_te1_", "conditioner_embedders_0_transformer_" },
    { "lora_te1_", "text_encoders_clip_l_transformer_" },
    { "lora_te2_", "text_encoder_2_" },
    { "lora_te2_", "text_encoders_clip_g_transformer_" },
    { "lora_te3_", "text_encoder_3_" },
    { "lora_te3_", "text_encoders_t5xxl_transformer_" },
    { NULL, NULL },
};

static heft_str cut_end(heft_str s, size_t bytes)
{
    return (heft_str){ s.ptr, s.len - bytes };
}

static bool begins(heft_str s, const char *text)
{
    size_t n = heft_lit(text).len;
    return s.len > n && !memcmp(s.ptr, text, n);
}

static heft_str cut_start(heft_str s, const char *text)
{
    size_t n = heft_lit(text).len;
    return (heft_str){ s.ptr + n, s.len - n };
}

heft_str heft_lora_unwrapped(heft_str module)
{
    module = begins(module, "base_model.model.") ? cut_start(module, "base_model.model.") : module;
    return begins(module, "base_model.") ? cut_start(module, "base_model.") : module;
}

heft_str heft_lora_without_layers(heft_str module)
{
    while (heft_str_ends(module, ".base_layer"))
        module = cut_end(module, sizeof ".base_layer" - 1);
    return module;
}

heft_lora_name heft_lora_name_read(heft_str name)
{
    heft_lora_name n = { .role = HEFT_LORA_WHOLE, .module = name };
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t len = heft_lit(suffixes[i].text).len;
        if (name.len <= len || !heft_str_ends(name, suffixes[i].text))
            continue;
        n.role = suffixes[i].role;
        n.what = suffixes[i].what;
        n.module = cut_end(name, len);
        break;
    }
    for (size_t i = 0; flat_prefixes[i].from; i++)
        n.is_flat = n.is_flat || begins(n.module, flat_prefixes[i].from);
    return n;
}

heft_lora_prefix heft_lora_prefix_at(uint32_t i, bool is_flat)
{
    return is_flat ? flat_prefixes[i] : prefixes[i];
}
