/* nvfp4.c - numbers of 4 bits (E2M1), two in a byte, with a scale of 8 bits (E4M3) for 16 elements
 * of a row, and a scale of the whole tensor. */
#include "scheme/recognition.h"

static const heft_scheme_names names[] = {
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

static bool recognise(heft_scheme_group *g)
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
    .names = names,
    .name_count = sizeof names / sizeof *names,
    .recognise = recognise,
};
