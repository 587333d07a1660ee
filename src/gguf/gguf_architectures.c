/* gguf_architectures.c - the architectures, and what of config.json llama.cpp reads. */
#include "gguf/gguf_architectures.h"

#include "base/text.h"

#define U32    HEFT_RULE_U32
#define F32    HEFT_RULE_F32
#define FLAG   HEFT_RULE_BOOL
#define NEEDED HEFT_RULE_NEEDED, 0
#define IF_SET HEFT_RULE_LEFT_OUT, 0
#define OR(x)  HEFT_RULE_DEFAULT, x
#define END         \
    {               \
        .key = NULL \
    }

/* ---- keys ---- */

static const heft_gguf_rule sizes[] = {
    { "block_count", "num_hidden_layers|n_layer", U32, NEEDED },
    { "context_length", "max_position_embeddings|n_positions|n_ctx", U32, NEEDED },
    { "embedding_length", "hidden_size|n_embd", U32, NEEDED },
    { "attention.head_count", "num_attention_heads|n_head", U32, NEEDED },
    END,
};

static const heft_gguf_rule decoder[] = {
    { "feed_forward_length", "intermediate_size", U32, NEEDED },
    { "attention.head_count_kv", "num_key_value_heads|num_attention_heads", U32, NEEDED },
    { "attention.layer_norm_rms_epsilon", "rms_norm_eps", F32, NEEDED },
    { "attention.key_length", "head_dim", U32, IF_SET },
    { "attention.value_length", "head_dim", U32, IF_SET },
    { "rope.freq_base", "=theta", F32, IF_SET },
    END,
};

static const heft_gguf_rule mixtral[] = {
    { "expert_count", "num_local_experts", U32, NEEDED },
    { "expert_used_count", "num_experts_per_tok", U32, NEEDED },
    END,
};

static const heft_gguf_rule rotary[] = {
    { "rope.dimension_count", "=rotary", U32, NEEDED },
    END,
};

static const heft_gguf_rule experts[] = {
    { "expert_count", "num_experts|num_local_experts|n_routed_experts", U32, NEEDED },
    { "expert_used_count", "num_experts_per_tok", U32, NEEDED },
    { "expert_feed_forward_length", "moe_intermediate_size|intermediate_size", U32, NEEDED },
    { "expert_shared_feed_forward_length", "shared_expert_intermediate_size", U32, IF_SET },
    END,
};

static const heft_gguf_rule gemma[] = {
    { "attention.key_length", "head_dim", U32, NEEDED },
    { "attention.value_length", "head_dim", U32, NEEDED },
    { "feed_forward_length", "intermediate_size", U32, NEEDED },
    { "attention.head_count_kv", "num_key_value_heads|num_attention_heads", U32, NEEDED },
    { "attention.layer_norm_rms_epsilon", "rms_norm_eps", F32, NEEDED },
    { "rope.freq_base", "=theta", F32, IF_SET },
    END,
};

static const heft_gguf_rule gemma2[] = {
    { "attn_logit_softcapping", "attn_logit_softcapping", F32, NEEDED },
    { "final_logit_softcapping", "final_logit_softcapping", F32, NEEDED },
    { "attention.sliding_window", "sliding_window", U32, NEEDED },
    END,
};

/* transformers leaves out of config.json what is the default of its class. */
static const heft_gguf_rule gemma3[] = {
    { "block_count", "num_hidden_layers", U32, NEEDED },
    { "context_length", "max_position_embeddings", U32, OR(131072) },
    { "embedding_length", "hidden_size", U32, NEEDED },
    { "feed_forward_length", "intermediate_size", U32, NEEDED },
    { "attention.head_count", "num_attention_heads", U32, OR(8) },
    { "attention.head_count_kv", "num_key_value_heads", U32, OR(4) },
    { "attention.layer_norm_rms_epsilon", "rms_norm_eps", F32, OR(1e-6) },
    { "attention.key_length", "head_dim", U32, OR(256) },
    { "attention.value_length", "head_dim", U32, OR(256) },
    { "attention.sliding_window", "sliding_window", U32, NEEDED },
    { "final_logit_softcapping", "final_logit_softcapping", F32, IF_SET },
    { "rope.freq_base", "=theta", F32, OR(1000000) },
    { "rope.freq_base_swa", "rope_local_base_freq|rope_parameters.sliding_attention.rope_theta",
      F32, OR(10000) },
    END,
};

static const heft_gguf_rule windows[] = {
    { "attention.sliding_window", "sliding_window", U32, NEEDED },
    END,
};

/* A window of 0 tells models without one from those that llama.cpp has a default for. */
static const heft_gguf_rule phi3[] = {
    { "attention.sliding_window", "sliding_window", U32, OR(0) },
    { "rope.scaling.original_context_length",
      "rope_parameters.original_max_position_embeddings|original_max_position_embeddings|"
      "max_position_embeddings",
      U32, NEEDED },
    END,
};

static const heft_gguf_rule gpt2[] = {
    { "feed_forward_length", "n_inner|=width4", U32, NEEDED },
    { "attention.layer_norm_epsilon", "layer_norm_epsilon", F32, NEEDED },
    END,
};

static const heft_gguf_rule bert[] = {
    { "feed_forward_length", "intermediate_size", U32, NEEDED },
    { "attention.layer_norm_epsilon", "layer_norm_eps", F32, NEEDED },
    { "attention.causal", "=no", FLAG, NEEDED },
    { "pooling_type", "=pooling", U32, IF_SET },
    END,
};

/* llama.cpp computes latent attention with one head of keys for all. */
static const heft_gguf_rule deepseek2[] = {
    { "feed_forward_length", "intermediate_size", U32, NEEDED },
    { "attention.head_count_kv", "=one", U32, NEEDED },
    { "attention.layer_norm_rms_epsilon", "rms_norm_eps", F32, OR(1e-6) },
    { "attention.q_lora_rank", "q_lora_rank", U32, IF_SET },
    { "attention.kv_lora_rank", "kv_lora_rank", U32, NEEDED },
    { "attention.key_length", "=latent_key", U32, NEEDED },
    { "attention.value_length", "kv_lora_rank", U32, NEEDED },
    { "attention.key_length_mla", "=key", U32, NEEDED },
    { "attention.value_length_mla", "v_head_dim", U32, NEEDED },
    { "rope.dimension_count", "qk_rope_head_dim", U32, NEEDED },
    { "rope.freq_base", "=theta", F32, IF_SET },
    { "rope.scaling.yarn_log_multiplier", "=yarn_log", F32, IF_SET },
    END,
};

static const heft_gguf_rule deepseek2_experts[] = {
    { "leading_dense_block_count", "first_k_dense_replace", U32, OR(0) },
    { "expert_count", "n_routed_experts", U32, NEEDED },
    { "expert_used_count", "num_experts_per_tok", U32, NEEDED },
    { "expert_feed_forward_length", "moe_intermediate_size", U32, NEEDED },
    { "expert_shared_count", "n_shared_experts", U32, OR(0) },
    { "expert_weights_scale", "routed_scaling_factor", F32, IF_SET },
    { "expert_weights_norm", "norm_topk_prob|=version3", FLAG, IF_SET },
    { "expert_group_count", "=groups", U32, IF_SET },
    { "expert_group_used_count", "=groups_used", U32, IF_SET },
    { "expert_gating_func", "=gating", U32, NEEDED },
    END,
};

/* ---- settings with one value ---- */

static const heft_gguf_fixed silu[] = {
    { "hidden_act", "silu|swish", NULL, NULL },
    { .from = NULL },
};

static const heft_gguf_fixed full_attention[] = {
    { "sliding_window", "null|0",
      "llama.cpp computes full attention; %q has a sliding window, which differs in longer texts",
      NULL },
    { .from = NULL },
};

static const heft_gguf_fixed qwen2[] = {
    { "use_sliding_window", "false|null",
      "llama.cpp computes full attention; %q has a sliding window, which differs in longer texts",
      NULL },
    { .from = NULL },
};

static const heft_gguf_fixed sparse_layers[] = {
    { "decoder_sparse_step", "1", NULL, NULL },
    { "mlp_only_layers.0", "null", NULL, NULL },
    { .from = NULL },
};

static const heft_gguf_fixed raw_weights[] = {
    { "norm_topk_prob", "false", NULL, NULL },
    { .from = NULL },
};

static const heft_gguf_fixed normalised_weights[] = {
    { "norm_topk_prob", "true", NULL, "false" },
    { .from = NULL },
};

/* transformers computes the tanh form for "gelu" here, too. */
static const heft_gguf_fixed gelu_tanh[] = {
    { "hidden_activation|hidden_act", "gelu_pytorch_tanh|gelu", NULL, NULL },
    { "use_bidirectional_attention", "false|null", NULL, NULL },
    { .from = NULL },
};

static const heft_gguf_fixed gemma3_fixed[] = {
    { "attn_logit_softcapping", "null", NULL, NULL },
    { .from = NULL },
};

static const heft_gguf_fixed gpt_oss_fixed[] = {
    { "swiglu_limit", "7|7.0", NULL, NULL },
    { .from = NULL },
};

static const heft_gguf_fixed gpt2_fixed[] = {
    { "activation_function", "gelu_new|gelu_pytorch_tanh|gelu_fast", NULL, NULL },
    { "scale_attn_by_inverse_layer_idx", "false|null", NULL, NULL },
    { "scale_attn_weights", "true", NULL, NULL },
    { "add_cross_attention", "false", NULL, NULL },
    { .from = NULL },
};

static const heft_gguf_fixed bert_fixed[] = {
    { "hidden_act", "gelu|gelu_new|gelu_pytorch_tanh", NULL, NULL },
    { "position_embedding_type", "absolute", NULL, NULL },
    { "is_decoder", "false", NULL, NULL },
    { .from = NULL },
};

static const heft_gguf_fixed deepseek2_fixed[] = {
    { "moe_layer_freq", "1", NULL, NULL },
    { "rope_interleave", "true", NULL, NULL },
    { "scoring_func", "softmax|sigmoid", NULL, NULL },
    { .from = NULL },
};

static const heft_gguf_fixed deepseek_v2[] = {
    { "topk_method", "greedy",
      "llama.cpp rates a group of experts by its best two, topk_method in %q by its best one: "
      "texts may meet other experts",
      NULL },
    { .from = NULL },
};

static const heft_gguf_fixed deepseek_v3[] = {
    { "topk_method", "noaux_tc", NULL, NULL },
    { .from = NULL },
};

/* ---- architectures ---- */

static const heft_gguf_architecture architectures[] = {
    { "llama",
      "llama|mistral",
      "LlamaForCausalLM",
      { sizes, decoder, rotary },
      { silu, full_attention },
      1 },
    { "llama",
      "mixtral",
      "MixtralForCausalLM",
      { sizes, decoder, mixtral, rotary },
      { silu, full_attention },
      1 },
    { "qwen2", "qwen2", "Qwen2ForCausalLM", { sizes, decoder }, { silu, qwen2 }, 1 },
    { "qwen2moe",
      "qwen2_moe",
      "Qwen2MoeForCausalLM",
      { sizes, decoder, experts },
      { silu, qwen2, sparse_layers, raw_weights },
      1 },
    { "qwen3", "qwen3", "Qwen3ForCausalLM", { sizes, decoder }, { silu, qwen2 }, 1 },
    { "qwen3moe",
      "qwen3_moe",
      "Qwen3MoeForCausalLM",
      { sizes, decoder, experts },
      { silu, qwen2, sparse_layers, normalised_weights },
      1 },
    { "gemma", "gemma", "GemmaForCausalLM", { sizes, gemma }, { gelu_tanh }, 1 },
    { "gemma2", "gemma2", "Gemma2ForCausalLM", { sizes, gemma, gemma2 }, { gelu_tanh }, 1 },
    { "gemma3",
      "gemma3_text|gemma3",
      "Gemma3ForCausalLM",
      { gemma3 },
      { gelu_tanh, gemma3_fixed },
      1 },
    { "phi3",
      "phi3",
      "Phi3ForCausalLM",
      { sizes, decoder, rotary, phi3 },
      { silu, full_attention },
      1 },
    { "gpt-oss",
      "gpt_oss",
      "GptOssForCausalLM",
      { sizes, decoder, experts, windows },
      { silu, gpt_oss_fixed },
      1 },
    { "gpt2", "gpt2", "GPT2LMHeadModel", { sizes, gpt2 }, { gpt2_fixed }, 1 },
    { "bert", "bert", "BertModel", { sizes, bert }, { bert_fixed }, 1 },
    { "deepseek2",
      "deepseek_v2",
      "DeepseekV2ForCausalLM",
      { sizes, deepseek2, deepseek2_experts },
      { silu, deepseek2_fixed, deepseek_v2 },
      1 },
    { "deepseek2",
      "deepseek_v3",
      "DeepseekV3ForCausalLM",
      { sizes, deepseek2, deepseek2_experts },
      { silu, deepseek2_fixed, deepseek_v3 },
      1 },
    { "olmo2", "olmo2", "Olmo2ForCausalLM", { sizes, decoder }, { silu }, 1 },
    { "glm4", "glm4", "Glm4ForCausalLM", { sizes, decoder, rotary }, { silu }, 0.5 },
};

const heft_gguf_architecture *heft_gguf_architecture_at(uint32_t i)
{
    return i < sizeof architectures / sizeof *architectures ? &architectures[i] : NULL;
}

bool heft_gguf_is_among(heft_str text, const char *several)
{
    while (*several) {
        size_t len = 0;
        while (several[len] && several[len] != '|')
            len++;
        if (heft_str_eq(text, (heft_str){ several, len }))
            return true;
        several += len + (several[len] == '|');
    }
    return false;
}

const heft_gguf_architecture *heft_gguf_architecture_of(heft_str model_type)
{
    const heft_gguf_architecture *a;
    for (uint32_t i = 0; (a = heft_gguf_architecture_at(i)); i++)
        if (heft_gguf_is_among(model_type, a->model_types))
            return a;
    return NULL;
}
