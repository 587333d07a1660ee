/* map_texts.c - the texts of share/heft/maps, as tools/gen_maps.py writes them. */
#include "map/map_rules.h"

/* clang-format off */
const char *const heft_map_texts[] = {
    "map llama\n"
    "title Llama, and models of its layout\n"
    "from huggingface\n"
    "to gguf\n"
    "models llama\n"
    "architecture llama\n"
    "\nlet heads = num_attention_heads | text_config.num_attention_heads | "
    ".attention.head_count\n"
    "let kv = num_key_value_heads | text_config.num_key_value_heads | "
    ".attention.head_count_kv | heads\n"
    "\n\nvectors f32\n"
    "words wb = weight bias\n"
    "\nrequire model.embed_tokens.weight\n"
    "model.embed_tokens.weight -> token_embd.weight\n"
    "model.norm.weight -> output_norm.weight\n"
    "lm_head.weight -> output.weight\n"
    "\nmodel.layers.{i}.input_layernorm.weight -> blk.{i}.attn_norm.weight\n"
    "model.layers.{i}.post_attention_layernorm.weight -> blk.{i}.ffn_norm.weight\n"
    "model.layers.{i}.self_attn.q_proj.{wb} -> blk.{i}.attn_q.{wb} : rotary heads\n"
    "model.layers.{i}.self_attn.k_proj.{wb} -> blk.{i}.attn_k.{wb} : rotary kv\n"
    "words attn = v_proj:attn_v o_proj:attn_output\n"
    "model.layers.{i}.self_attn.{attn}.{wb} -> blk.{i}.{attn}.{wb}\n"
    "words ffn = gate_proj:ffn_gate up_proj:ffn_up down_proj:ffn_down\n"
    "model.layers.{i}.mlp.{ffn}.{wb} -> blk.{i}.{ffn}.{wb}\n"
    "\n\ndrop model.layers.{i}.self_attn.rotary_emb.inv_freq\n",
    NULL
};
/* clang-format on */
