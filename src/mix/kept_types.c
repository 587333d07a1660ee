/* kept_types.c - tensors whose type llama.cpp does not change, by their names in GGUF files. */
#include <heft/mix.h>

#include "base/text.h"
#include "mix/mix_table.h"
#include "model/dtype.h"

static bool contains(heft_str name, const char *text)
{
    heft_str t = heft_lit(text);
    return heft_str_seek((const uint8_t *)name.ptr, (const uint8_t *)name.ptr + name.len, t.ptr,
                         t.len);
}

const char *heft_mix_keeps(heft_str name)
{
    static const struct {
        const char *text, *reason;
        bool is_whole; /* the whole name, not a part */
    } rows[] = {
        { "_norm.weight", "norm", false },
        { "ffn_gate_inp.weight", "router of experts", false },
        { "ffn_gate_tid2eid.weight", "router of experts", false },
        { "altup", "small", false },
        { "laurel", "small", false },
        { "per_layer_model_proj", "small", false },
        { "position_embd.weight", "position embedding", true },
        { "token_types.weight", "token types", true },
        { "ssm_conv1d", "small", false },
        { "shortconv.conv.weight", "small", false },
        { "indexer.k_proj.weight", "small", false },
        { "indexer.q_proj.weight", "small", false },
        { "time_mix_first.weight", "small", false },
        { "time_mix_w0.weight", "small", false },
        { "time_mix_w1.weight", "small", false },
        { "time_mix_w2.weight", "small", false },
        { "time_mix_v0.weight", "small", false },
        { "time_mix_v1.weight", "small", false },
        { "time_mix_v2.weight", "small", false },
        { "time_mix_a0.weight", "small", false },
        { "time_mix_a1.weight", "small", false },
        { "time_mix_a2.weight", "small", false },
        { "time_mix_g1.weight", "small", false },
        { "time_mix_g2.weight", "small", false },
        { "time_mix_decay_w1.weight", "small", false },
        { "time_mix_decay_w2.weight", "small", false },
        { "time_mix_lerp_fused.weight", "small", false },
        { "attn_rel_b.weight", "position bias", false },
        { ".position_embd", "position embedding", false },
        { "sam.pos_embd", "position embedding", false },
        { "sam.neck.", "image encoder", false },
        { "sam.net_", "image encoder", false },
        { ".rel_pos", "position embedding", false },
        { ".patch_embd", "image encoder", false },
        { ".patch_merger", "image encoder", false },
        { "a.rvq.codebook", "code book", false },
        { "mm.a.code_embd", "code book", false },
    };
    if (!heft_str_ends(name, "weight"))
        return "not a weight";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_whole ? heft_str_is(name, rows[i].text) : contains(name, rows[i].text))
            return rows[i].reason;
    return NULL;
}

bool heft_mix_is_vector(const heft_tensor *t)
{
    uint32_t rank = t->rank;
    for (uint32_t i = 0; i < t->rank && t->dims[i] == 1; i++)
        rank--;
    return rank < 2;
}

const char *heft_mix_needs_f32(const heft_tensor *t, heft_str name)
{
    if (heft_dtype_kind_of(t->dtype) != HEFT_DTYPE_FLOAT)
        return NULL;
    return heft_mix_is_vector(t) ? "one dimension" : heft_mix_keeps(name);
}
