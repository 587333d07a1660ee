/* known_schemes.c - schemes that are decoded, by the names, types and shapes of their parts.
 *
 * The file of a decoder describes what the parts hold. */
#include "base/checked_math.h"
#include "base/text.h"
#include "scheme/recognition.h"

static const heft_scheme_names comfyui_names[] = {
    { NULL,
      "/weight",
      { { "description", "/comfy_quant", false },
        { "weight", "/weight", false },
        { "scale", "/weight_scale", true },
        { "global_scale", "/weight_scale_2", true },
        { "input_scale", "/input_scale", true },
        { "pre_quant_scale", "/pre_quant_scale", true } } },
    { NULL,
      "/weight",
      { { "scale", "/weight_scale", false },
        { "weight", "/weight", false },
        { "global_scale", "/weight_scale_2", true },
        { "input_scale", "/input_scale", true },
        { "pre_quant_scale", "/pre_quant_scale", true } } },
};

static bool recognise_comfyui(heft_scheme_group *g)
{
    heft_dtype weight = heft_group_dtype(g, "weight");
    g->bits = heft_is_float8(weight) || weight == HEFT_I8 ? 8 : 0;
    return g->names == comfyui_names ? heft_group_dtype(g, "description") == HEFT_U8
                                     : heft_str_is(g->settings->method, "comfyui");
}

const heft_scheme heft_scheme_comfyui = {
    .name = "comfyui",
    .names = comfyui_names,
    .name_count = sizeof comfyui_names / sizeof *comfyui_names,
    .recognise = recognise_comfyui,
};

static const heft_scheme_names nvfp4_names[] = {
    { "ModelOpt",
      "",
      { { "global_scale", "_scale_2", false },
        { "weight", "", false },
        { "scale", "_scale", false },
        { "input_scale", "/input_scale", true },
        { "pre_quant_scale", "/pre_quant_scale", true } } },
    { "ModelOpt",
      "",
      { { "global_scale", "_weight_scale_2", false },
        { "weight", "", false },
        { "scale", "_weight_scale", false },
        { "input_scale", "_input_scale", true } } },
    { "compressed-tensors",
      "",
      { { "global_scale", "_global_scale", false },
        { "weight", "_packed", false },
        { "scale", "_scale", false },
        { "shape", "_shape", true },
        { "input_scale", "/input_global_scale", true } } },
    { "GGUF",
      "/weight",
      { { "global_scale", "/scale", false },
        { "weight", "/weight", false },
        { "input_scale", "/input_scale", true } } },
    { "GGUF",
      "",
      { { "global_scale", ".scale", false },
        { "weight", "", false },
        { "input_scale", ".input_scale", true } } },
};

static bool recognise_nvfp4(heft_scheme_group *g)
{
    enum { GROUP = 16 };
    heft_dtype weight = heft_group_dtype(g, "weight"), scale = heft_group_dtype(g, "scale");
    g->bits = 4;
    heft_group_rows(g, GROUP);
    if (weight == HEFT_NVFP4) /* blocks with scales of their own */
        return heft_is_scale(heft_group_dtype(g, "global_scale"));
    return (weight == HEFT_U8 || weight == HEFT_F4_E2M1) &&
           (heft_is_float8(scale) || scale == HEFT_U8) &&
           heft_is_scale(heft_group_dtype(g, "global_scale"));
}

const heft_scheme heft_scheme_nvfp4 = {
    .name = "nvfp4",
    .names = nvfp4_names,
    .name_count = sizeof nvfp4_names / sizeof *nvfp4_names,
    .recognise = recognise_nvfp4,
};

static const heft_scheme_names mxfp4_names[] = {
    { "gpt-oss", "", { { "weight", "_blocks", false }, { "scale", "_scales", false } } },
    { "gpt-oss", "", { { "weight", ".blocks", false }, { "scale", ".scales", false } } },
    { "compressed-tensors",
      "",
      { { "weight", "_packed", false },
        { "scale", "_scale", false },
        { "shape", "_shape", true } } },
    { "DeepSeek", "/weight", { { "scale", "/scale", false }, { "weight", "/weight", false } } },
    { NULL, /* AMD Quark, ModelOpt */
      "",
      { { "scale", "_scale", false },
        { "weight", "", false },
        { "input_scale", "/input_scale", true } } },
};

/* Two elements in a byte.  gpt-oss stores the 16 bytes of a group as a dimension of their own. */
static bool recognise_mxfp4(heft_scheme_group *g)
{
    enum { GROUP = 32, GROUP_BYTES = GROUP / 2 };
    heft_dtype weight = heft_group_dtype(g, "weight"), scale = heft_group_dtype(g, "scale");
    bool has_group = heft_group_rank(g, "weight") == heft_group_rank(g, "scale") + 1;
    uint64_t bytes = heft_group_dim(g, "weight", 0) * (weight == HEFT_F4_E2M1 ? 1 : 2);
    g->bits = 4;
    heft_group_rows(g, GROUP);
    if (has_group)
        return weight == HEFT_U8 && scale == HEFT_U8 &&
               heft_group_dim(g, "weight", 0) == GROUP_BYTES &&
               heft_group_dim(g, "weight", 1) == heft_group_dim(g, "scale", 0);
    return (weight == HEFT_U8 || weight == HEFT_I8 || weight == HEFT_F4_E2M1) &&
           (scale == HEFT_U8 || scale == HEFT_F8_E8M0) &&
           (bytes + GROUP - 1) / GROUP == heft_group_dim(g, "scale", 0) &&
           heft_group_dim(g, "weight", 1) == heft_group_dim(g, "scale", 1);
}

const heft_scheme heft_scheme_mxfp4 = {
    .name = "mxfp4",
    .names = mxfp4_names,
    .name_count = sizeof mxfp4_names / sizeof *mxfp4_names,
    .recognise = recognise_mxfp4,
};

static const heft_scheme_names fp8_names[] = {
    { NULL,
      "",
      { { "scale", "_scale_inv", false },
        { "weight", "", false },
        { "input_scale", "/input_scale", true },
        { "input_scale", "/activation_scale", true } } },
    { NULL,
      "",
      { { "scale", "_scale", false },
        { "weight", "", false },
        { "zero_point", "_zero_point", true },
        { "input_scale", "/input_scale", true },
        { "output_scale", "/output_scale", true },
        { "pre_quant_scale", "/pre_quant_scale", true } } },
    { "Mistral",
      "/weight",
      { { "scale", "/qscale_weight", false },
        { "weight", "/weight", false },
        { "input_scale", "/qscale_act", true } } },
    { "ComfyUI",
      "/weight",
      { { "scale", "/scale_weight", false },
        { "weight", "/weight", false },
        { "input_scale", "/scale_input", true } } },
    { NULL,
      "/weight",
      { { "scale", "/scale", false },
        { "weight", "/weight", false },
        { "input_scale", "/input_scale", true } } },
};

/* A scale of the wrong shape does not make an unscaled weight: the block stays unknown. */
static bool recognise_fp8(heft_scheme_group *g)
{
    g->bits = 8;
    (void)heft_group_blocks(g, heft_group_dim(g, "weight", 1), heft_group_dim(g, "weight", 0));
    return heft_is_float8(heft_group_dtype(g, "weight")) &&
           heft_is_scale(heft_group_dtype(g, "scale"));
}

static bool recognise_mxfp8(heft_scheme_group *g)
{
    enum { GROUP = 32 };
    heft_dtype scale = heft_group_dtype(g, "scale");
    /* a list of bytes for a matrix: tiles, as TensorRT-LLM stores them */
    bool is_in_tiles = scale == HEFT_U8 && heft_group_rank(g, "scale") == 1 &&
                       heft_group_rank(g, "weight") > 1 && !heft_group_is_scalar(g, "scale");
    g->bits = 8;
    heft_group_rows(g, GROUP);
    return heft_is_float8(heft_group_dtype(g, "weight")) &&
           (scale == HEFT_U8 || scale == HEFT_F8_E8M0) &&
           (is_in_tiles || (heft_group_dim(g, "weight", 1) == heft_group_dim(g, "scale", 1) &&
                            (heft_group_dim(g, "weight", 0) + GROUP - 1) / GROUP ==
                                heft_group_dim(g, "scale", 0)));
}

const heft_scheme heft_scheme_fp8 = {
    .name = "fp8",
    .names = fp8_names,
    .name_count = sizeof fp8_names / sizeof *fp8_names,
    .recognise = recognise_fp8,
};

const heft_scheme heft_scheme_mxfp8 = {
    .name = "mxfp8",
    .names = fp8_names,
    .name_count = 2,
    .recognise = recognise_mxfp8,
};

static const heft_scheme_names packed_names[] = {
    { "pack-quantized",
      "",
      { { "weight", "_packed", false },
        { "scale", "_scale", false },
        { "shape", "_shape", true },
        { "zero_point", "_zero_point", true },
        { "group_index", "_g_idx", true },
        { "global_scale", "_global_scale", true } } },
    { "int-quantized",
      "/weight",
      { { "scale", "/weight_scale", false },
        { "weight", "/weight", false },
        { "zero_point", "/weight_zero_point", true },
        { "group_index", "/weight_g_idx", true },
        { "input_scale", "/input_scale", true },
        { "input_zero_point", "/input_zero_point", true } } },
};

/* The number of columns is in the data of "shape", so groups are known from the settings only. */
static bool recognise_pack_quantised(heft_scheme_group *g)
{
    g->bits = g->settings->bits;
    if (heft_group_dim(g, "scale", 0) == 1)
        heft_group_rows(g, 0);
    else if (g->settings->has_group)
        heft_group_rows(g, g->settings->group);
    return true;
}

static bool recognise_packed(heft_scheme_group *g)
{
    heft_dtype weight = heft_group_dtype(g, "weight"), scale = heft_group_dtype(g, "scale");
    if (!heft_is_packed(weight) || !heft_is_scale(scale))
        return false;
    if (g->names == packed_names)
        return recognise_pack_quantised(g);
    g->bits = 8;
    return weight == HEFT_I8 && heft_group_rank(g, "weight") > 1 &&
           heft_group_blocks(g, heft_group_dim(g, "weight", 1), heft_group_dim(g, "weight", 0));
}

const heft_scheme heft_scheme_compressed_tensors = {
    .name = "compressed-tensors",
    .names = packed_names,
    .name_count = sizeof packed_names / sizeof *packed_names,
    .recognise = recognise_packed,
};

static const heft_scheme_names bitnet_names[] = {
    { NULL, "/weight", { { "scale", "/weight_scale", false }, { "weight", "/weight", false } } },
};

static bool recognise_bitnet(heft_scheme_group *g)
{
    g->bits = 2;
    g->has_block = true;
    return heft_group_dtype(g, "weight") == HEFT_U8 && heft_group_rank(g, "weight") == 2 &&
           heft_is_scale(heft_group_dtype(g, "scale")) && heft_group_is_scalar(g, "scale");
}

const heft_scheme heft_scheme_bitnet = {
    .name = "bitnet",
    .names = bitnet_names,
    .name_count = 1,
    .recognise = recognise_bitnet,
};

/* The parts of awq have the same names. */
static const heft_scheme_names gptq_names[] = {
    { NULL,
      "/weight",
      { { "weight", "/qweight", false },
        { "scale", "/scales", false },
        { "zero_point", "/qzeros", true },
        { "group_index", "/g_idx", true } } },
};

/* The words of a column hold all inputs, and the words of the zero points all outputs. */
static bool recognise_gptq(heft_scheme_group *g)
{
    enum { WORD_BITS = 32 };
    uint64_t words = heft_group_dim(g, "weight", 1), outputs = heft_group_dim(g, "weight", 0);
    uint64_t zero_words = heft_group_dim(g, "zero_point", 0),
             groups = heft_group_dim(g, "scale", 1);
    g->bits = g->settings->bits;
    if (!g->bits && heft_group_part(g, "zero_point") != HEFT_NONE && outputs &&
        zero_words <= outputs)
        g->bits = (uint32_t)heft_div(zero_words * WORD_BITS, outputs);
    if (groups && g->bits && words <= UINT64_MAX / WORD_BITS)
        heft_group_rows(g,
                        groups == 1 ? 0 : heft_div(heft_div(words * WORD_BITS, g->bits), groups));
    return heft_group_dtype(g, "weight") == HEFT_I32 &&
           heft_is_scale(heft_group_dtype(g, "scale")) && heft_group_dim(g, "scale", 0) == outputs;
}

const heft_scheme heft_scheme_gptq = {
    .name = "gptq",
    .names = gptq_names,
    .name_count = sizeof gptq_names / sizeof *gptq_names,
    .recognise = recognise_gptq,
};

static bool recognise_awq(heft_scheme_group *g)
{
    enum { WORD_BITS = 32 };
    uint64_t inputs = heft_group_dim(g, "weight", 1), words = heft_group_dim(g, "weight", 0);
    uint64_t groups = heft_group_dim(g, "scale", 1), outputs = heft_group_dim(g, "scale", 0);
    bool has_words = outputs && words < outputs && words <= UINT32_MAX;
    g->bits = has_words ? (uint32_t)heft_div(words * WORD_BITS, outputs) : 0;
    if (groups)
        heft_group_rows(g, groups == 1 ? 0 : heft_div(inputs, groups));
    return heft_group_dtype(g, "weight") == HEFT_I32 &&
           heft_is_scale(heft_group_dtype(g, "scale")) && g->bits &&
           words * WORD_BITS == outputs * g->bits;
}

const heft_scheme heft_scheme_awq = {
    .name = "awq",
    .names = gptq_names,
    .name_count = sizeof gptq_names / sizeof *gptq_names,
    .recognise = recognise_awq,
};

#define FOUR_BITS(state)                                                                       \
    {                                                                                          \
        { "absmax", ".absmax", false }, { "weight", "", false },                               \
            { "quant_map", ".quant_map", false }, { "nested_absmax", ".nested_absmax", true }, \
            { "nested_quant_map", ".nested_quant_map", true },                                 \
        {                                                                                      \
            "quant_state", ".quant_state.bitsandbytes__" state, false                          \
        }                                                                                      \
    }

static const heft_scheme_names bitsandbytes_names[] = {
    { "nf4", "", FOUR_BITS("nf4") },
    { "fp4", "", FOUR_BITS("fp4") },
    { NULL,
      "",
      { { "absmax", ".absmax", false },
        { "weight", "", false },
        { "quant_map", ".quant_map", false },
        { "nested_absmax", ".nested_absmax", true },
        { "nested_quant_map", ".nested_quant_map", true } } },
    { "int8",
      "/weight",
      { { "scale", "/SCB", false },
        { "weight", "/weight", false },
        { "format", "/weight_format", true } } },
};

/* The bytes of a packed weight may be stored as any type, quant_storage. */
static bool recognise_bitsandbytes(heft_scheme_group *g)
{
    bool is_int8 = heft_group_part(g, "scale") != HEFT_NONE;
    g->bits = is_int8 ? 8 : 4;
    if (is_int8)
        heft_group_rows(g, 0);
    return is_int8 ? heft_group_dtype(g, "weight") == HEFT_I8
                   : heft_group_dtype(g, "quant_map") == HEFT_F32;
}

const heft_scheme heft_scheme_bitsandbytes = {
    .name = "bitsandbytes",
    .names = bitsandbytes_names,
    .name_count = sizeof bitsandbytes_names / sizeof *bitsandbytes_names,
    .recognise = recognise_bitsandbytes,
};

static const heft_scheme_names mlx_names[] = {
    { NULL,
      "/weight",
      { { "scale", "/scales", false },
        { "weight", "/weight", false },
        { "bias", "/biases", true },
        { "global_scale", "/global_scale", true } } },
};

/* The words of a group hold bits * group bits, so one number gives the other. */
static bool recognise_mlx(heft_scheme_group *g)
{
    enum { WORD_BITS = 32 };
    uint64_t groups = heft_group_dim(g, "scale", 0), words = heft_group_dim(g, "weight", 0);
    bool is_affine = heft_group_part(g, "bias") != HEFT_NONE;
    heft_dtype scale = heft_group_dtype(g, "scale");
    g->variant = is_affine ? "affine" : NULL;
    g->bits = g->settings->bits;
    if (g->settings->has_group)
        heft_group_rows(g, g->settings->group);
    else if (g->bits && groups && words <= UINT64_MAX / WORD_BITS)
        heft_group_rows(g, heft_div(heft_div(words * WORD_BITS, g->bits), groups));
    return heft_group_dtype(g, "weight") == HEFT_U32 &&
           (is_affine ? heft_is_scale(scale) : scale == HEFT_U8 || scale == HEFT_F8_E8M0);
}

const heft_scheme heft_scheme_mlx = {
    .name = "mlx",
    .names = mlx_names,
    .name_count = sizeof mlx_names / sizeof *mlx_names,
    .recognise = recognise_mlx,
};

static const heft_scheme_names modelopt_names[] = {
    { "int4 awq",
      "/weight",
      { { "scale", "/weight_scale", false },
        { "weight", "/weight", false },
        { "global_scale", "/weight_scale_2", true },
        { "input_scale", "/input_scale", true },
        { "pre_quant_scale", "/pre_quant_scale", true } } },
};

static bool recognise_modelopt(heft_scheme_group *g)
{
    uint64_t pairs = heft_group_dim(g, "weight", 1), rows = heft_group_dim(g, "scale", 1);
    uint64_t columns = heft_group_dim(g, "weight", 0), groups = heft_group_dim(g, "scale", 0);
    g->bits = 4;
    if (groups)
        heft_group_rows(g, groups == 1 ? 0 : heft_div(columns, groups));
    return heft_group_dtype(g, "weight") == HEFT_U8 && heft_group_rank(g, "weight") > 1 &&
           heft_group_rank(g, "scale") == heft_group_rank(g, "weight") && pairs &&
           rows / 2 == pairs && rows % 2 == 0 && heft_is_scale(heft_group_dtype(g, "scale"));
}

const heft_scheme heft_scheme_modelopt = {
    .name = "modelopt",
    .names = modelopt_names,
    .name_count = sizeof modelopt_names / sizeof *modelopt_names,
    .recognise = recognise_modelopt,
};
