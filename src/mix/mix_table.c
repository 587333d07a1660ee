/* mix_table.c - the mixes, their rules, and the names of tensors that keep their type. */
#include "mix/mix_table.h"

#include "base/text.h"
#include "model/block_encode.h"
#include "model/dtype.h"

/* ---- mixes ---- */

/* By number.  Names in small letters, since users write them so. */
static const heft_mix_info mixes[] = {
    { "f32", HEFT_MIX_F32, HEFT_F32, NULL },
    { "f16", HEFT_MIX_F16, HEFT_F16, NULL },
    { "q4_0", HEFT_MIX_Q4_0, HEFT_Q4_0, NULL },
    { "q4_1", HEFT_MIX_Q4_1, HEFT_Q4_1, NULL },
    { "q8_0", HEFT_MIX_Q8_0, HEFT_Q8_0, NULL },
    { "q5_0", HEFT_MIX_Q5_0, HEFT_Q5_0, NULL },
    { "q5_1", HEFT_MIX_Q5_1, HEFT_Q5_1, NULL },
    { "q2_k", HEFT_MIX_Q2_K, HEFT_Q2_K, NULL },
    { "q3_k_s", HEFT_MIX_Q3_K_S, HEFT_Q3_K, NULL },
    { "q3_k_m", HEFT_MIX_Q3_K_M, HEFT_Q3_K, NULL },
    { "q3_k_l", HEFT_MIX_Q3_K_L, HEFT_Q3_K, NULL },
    { "q4_k_s", HEFT_MIX_Q4_K_S, HEFT_Q4_K, NULL },
    { "q4_k_m", HEFT_MIX_Q4_K_M, HEFT_Q4_K, NULL },
    { "q5_k_s", HEFT_MIX_Q5_K_S, HEFT_Q5_K, NULL },
    { "q5_k_m", HEFT_MIX_Q5_K_M, HEFT_Q5_K, NULL },
    { "q6_k", HEFT_MIX_Q6_K, HEFT_Q6_K, NULL },
    { "iq2_xxs", 19, HEFT_IQ2_XXS, NULL },
    { "iq2_xs", 20, HEFT_IQ2_XS, NULL },
    { "q2_k_s", HEFT_MIX_Q2_K_S, HEFT_Q2_K, NULL },
    { "iq3_xs", 22, HEFT_IQ3_S, NULL },
    { "iq3_xxs", 23, HEFT_IQ3_XXS, NULL },
    { "iq1_s", 24, HEFT_IQ1_S, NULL },
    { "iq4_nl", HEFT_MIX_IQ4_NL, HEFT_IQ4_NL, NULL },
    { "iq3_s", 26, HEFT_IQ3_S, NULL },
    { "iq3_m", 27, HEFT_IQ3_S, NULL },
    { "iq2_s", 28, HEFT_IQ2_XS, NULL },
    { "iq2_m", 29, HEFT_IQ2_S, NULL },
    { "iq4_xs", HEFT_MIX_IQ4_XS, HEFT_IQ4_XS, NULL },
    { "iq1_m", 31, HEFT_IQ1_M, NULL },
    { "bf16", HEFT_MIX_BF16, HEFT_BF16, NULL },
    { "tq1_0", HEFT_MIX_TQ1_0, HEFT_TQ1_0, NULL },
    { "tq2_0", HEFT_MIX_TQ2_0, HEFT_TQ2_0, NULL },
    { "mxfp4_moe", HEFT_MIX_MXFP4_MOE, HEFT_MXFP4, NULL },
    { "q1_0", HEFT_MIX_Q1_0, HEFT_Q1_0, NULL },
    { "q2_0", HEFT_MIX_Q2_0, HEFT_Q2_0, NULL },
};

static const struct {
    const char *name, *mix;
} aliases[] = { { "q3_k", "q3_k_m" }, { "q4_k", "q4_k_m" }, { "q5_k", "q5_k_m" } };

heft_mix_info heft_mix_info_at(uint32_t i)
{
    heft_mix_info info = { .name = NULL };
    if (i < sizeof mixes / sizeof *mixes)
        info = mixes[i];
    if (heft_dtype_kind_of(info.dtype) == HEFT_DTYPE_BLOCK)
        info.refusal = heft_block_encode_refusal(info.dtype);
    return info;
}

bool heft_mix_find(heft_mix_info *out, heft_str name)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (heft_str_is_any_case(name, aliases[i].name))
            name = heft_lit(aliases[i].mix);
    for (uint32_t i = 0; i < sizeof mixes / sizeof *mixes; i++)
        if (heft_str_is_any_case(name, mixes[i].name)) {
            *out = heft_mix_info_at(i);
            return true;
        }
    return false;
}

/* ---- rules ---- */

#define MIX(name) (UINT64_C(1) << HEFT_MIX_##name)
#define TERNARY   (MIX(TQ1_0) | MIX(TQ2_0) | MIX(Q2_0))
#define IQ4       (MIX(IQ4_NL) | MIX(IQ4_XS))
#define ANY       UINT64_MAX

/* The first rule that fits counts.  The tied embedding counts as OUTPUT. */
static const heft_mix_rule rules[] = {
    { MIX(MXFP4_MOE), HEFT_MIX_OUTPUT, 0, HEFT_Q8_0 },
    { MIX(MXFP4_MOE), HEFT_MIX_ANY, HEFT_MIX_STACKED, HEFT_MXFP4 },
    { MIX(MXFP4_MOE), HEFT_MIX_ANY, 0, HEFT_Q8_0 },

    { ANY, HEFT_MIX_OUTPUT, HEFT_MIX_UNDIVIDED, HEFT_Q8_0 },
    { MIX(Q8_0), HEFT_MIX_ANY, 0, HEFT_Q8_0 },
    { ANY, HEFT_MIX_OUTPUT, HEFT_MIX_FALCON, HEFT_Q8_0 },
    { ANY, HEFT_MIX_OUTPUT, 0, HEFT_Q6_K },
    { TERNARY, HEFT_MIX_EMBEDDING, 0, HEFT_Q4_K },

    { ANY, HEFT_MIX_V | HEFT_MIX_K, HEFT_MIX_EIGHT_EXPERTS, HEFT_Q8_0 },
    { MIX(Q2_K), HEFT_MIX_V, HEFT_MIX_70B, HEFT_Q5_K },
    { MIX(Q2_K) | MIX(Q2_K_S), HEFT_MIX_V, HEFT_MIX_GQA_4 | HEFT_MIX_70B, HEFT_Q5_K },
    { MIX(Q2_K) | MIX(Q2_K_S), HEFT_MIX_V, HEFT_MIX_GQA_4, HEFT_Q4_K },
    { MIX(Q2_K), HEFT_MIX_V, 0, HEFT_Q3_K },
    { MIX(Q3_K_M), HEFT_MIX_V, HEFT_MIX_FIRST_TWO, HEFT_Q5_K },
    { MIX(Q3_K_L), HEFT_MIX_V, 0, HEFT_Q5_K },
    { IQ4, HEFT_MIX_V, HEFT_MIX_GQA_4, HEFT_Q5_K },
    { MIX(Q4_K_M) | MIX(Q5_K_M), HEFT_MIX_V, HEFT_MIX_MORE, HEFT_Q6_K },
    { MIX(Q4_K_S), HEFT_MIX_V, HEFT_MIX_FIRST_FOUR, HEFT_Q5_K },
    { MIX(Q3_K_S) | MIX(Q3_K_M) | MIX(Q4_K_S) | MIX(Q4_K_M), HEFT_MIX_V, HEFT_MIX_70B, HEFT_Q5_K },
    { MIX(Q3_K_M), HEFT_MIX_V, 0, HEFT_Q4_K },

    { MIX(Q2_K), HEFT_MIX_DOWN, 0, HEFT_Q3_K },
    { MIX(Q2_K_S), HEFT_MIX_DOWN, HEFT_MIX_FIRST_EIGHTH, HEFT_Q4_K },
    { MIX(Q3_K_M), HEFT_MIX_DOWN, HEFT_MIX_FIRST_SIXTEENTH, HEFT_Q5_K },
    { MIX(Q3_K_M), HEFT_MIX_DOWN, HEFT_MIX_NOT_FALCON, HEFT_Q4_K },
    { MIX(Q3_K_M), HEFT_MIX_DOWN, HEFT_MIX_MORE, HEFT_Q4_K },
    { MIX(Q3_K_L), HEFT_MIX_DOWN, HEFT_MIX_FALCON, HEFT_Q4_K },
    { MIX(Q3_K_L), HEFT_MIX_DOWN, 0, HEFT_Q5_K },
    { MIX(Q4_K_M), HEFT_MIX_DOWN, HEFT_MIX_FALCON | HEFT_MIX_FIRST_SIXTEENTH, HEFT_Q6_K },
    { MIX(Q4_K_M), HEFT_MIX_DOWN, HEFT_MIX_FALCON | HEFT_MIX_MORE, HEFT_Q5_K },
    { MIX(Q4_K_M), HEFT_MIX_DOWN, HEFT_MIX_FALCON, HEFT_UNTYPED },
    { MIX(Q4_K_M) | MIX(Q5_K_M), HEFT_MIX_DOWN, HEFT_MIX_MORE, HEFT_Q6_K },
    { IQ4, HEFT_MIX_DOWN, HEFT_MIX_FIRST_EIGHTH | HEFT_MIX_NO_IMATRIX, HEFT_Q5_K },
    { MIX(Q4_K_S), HEFT_MIX_DOWN, HEFT_MIX_FIRST_EIGHTH | HEFT_MIX_NOT_FALCON, HEFT_Q5_K },
    { MIX(Q4_0), HEFT_MIX_DOWN, HEFT_MIX_FIRST_EIGHTH | HEFT_MIX_IMATRIX, HEFT_Q4_1 },
    { MIX(Q5_0), HEFT_MIX_DOWN, HEFT_MIX_FIRST_EIGHTH | HEFT_MIX_IMATRIX, HEFT_Q5_1 },

    { MIX(Q3_K_L), HEFT_MIX_O, HEFT_MIX_FALCON, HEFT_Q4_K },
    { MIX(Q2_K) | MIX(Q3_K_M), HEFT_MIX_O, HEFT_MIX_FALCON, HEFT_UNTYPED },
    { MIX(Q2_K) | MIX(Q3_K_S) | MIX(Q3_K_M) | IQ4 | MIX(Q4_K_S) | MIX(Q4_K_M), HEFT_MIX_O,
      HEFT_MIX_EIGHT_EXPERTS | HEFT_MIX_NOT_FALCON, HEFT_Q5_K },
    { MIX(Q3_K_L), HEFT_MIX_O, HEFT_MIX_EIGHT_EXPERTS, HEFT_UNTYPED },
    { MIX(Q2_K), HEFT_MIX_O, 0, HEFT_Q3_K },
    { MIX(Q3_K_M), HEFT_MIX_O, 0, HEFT_Q4_K },
    { MIX(Q3_K_L), HEFT_MIX_O, 0, HEFT_Q5_K },
};

const heft_mix_rule *heft_mix_rule_for(uint32_t number, uint32_t kind, uint32_t facts,
                                       uint32_t *unknown)
{
    uint32_t open = *unknown;
    *unknown = 0;
    for (const heft_mix_rule *r = rules; r < rules + sizeof rules / sizeof *rules; r++) {
        uint32_t missing = r->needs & ~facts;
        if (!(r->mixes >> number & 1) || !(r->kinds & kind) || missing & ~open)
            continue;
        *unknown = missing;
        return r;
    }
    return NULL;
}

/* ---- names ---- */

static bool contains(heft_str name, const char *text)
{
    heft_str t = heft_lit(text);
    return heft_str_seek((const uint8_t *)name.ptr, (const uint8_t *)name.ptr + name.len, t.ptr,
                         t.len);
}

uint32_t heft_mix_kind(heft_str name)
{
    static const struct {
        const char *text;
        uint32_t kind;
    } rows[] = {
        { "attn_qkv.weight", HEFT_MIX_V }, { "attn_kv_b.weight", HEFT_MIX_V },
        { "attn_v.weight", HEFT_MIX_V },   { "attn_k.weight", HEFT_MIX_K },
        { "attn_q.weight", HEFT_MIX_Q },   { "attn_output.weight", HEFT_MIX_O },
        { "ffn_up", HEFT_MIX_UP },         { "ffn_gate", HEFT_MIX_GATE },
        { "ffn_down", HEFT_MIX_DOWN },
    };
    if (heft_str_is(name, "output.weight"))
        return HEFT_MIX_OUTPUT;
    if (heft_str_is(name, "token_embd.weight") || heft_str_is(name, "per_layer_token_embd.weight"))
        return HEFT_MIX_EMBEDDING;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (contains(name, rows[i].text))
            return rows[i].kind;
    return HEFT_MIX_OTHER;
}

/* ---- fallbacks ---- */

heft_dtype heft_mix_fallback(heft_dtype t, uint64_t columns)
{
    static const struct {
        heft_dtype from, to;
    } rows[] = {
        { HEFT_IQ4_XS, HEFT_IQ4_NL }, { HEFT_Q2_0, HEFT_Q4_0 },  { HEFT_Q2_K, HEFT_Q4_0 },
        { HEFT_Q3_K, HEFT_Q4_0 },     { HEFT_TQ1_0, HEFT_Q4_0 }, { HEFT_TQ2_0, HEFT_Q4_0 },
        { HEFT_Q4_K, HEFT_Q5_0 },     { HEFT_Q5_K, HEFT_Q5_1 },  { HEFT_Q6_K, HEFT_Q8_0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].from == t && heft_dtype_fills_blocks(rows[i].to, columns))
            return rows[i].to;
    return HEFT_UNTYPED;
}
