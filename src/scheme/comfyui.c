/* comfyui.c - weights that a tensor comfy_quant beside them describes, as JSON. */
#include "scheme/recognition.h"

static const heft_scheme_names names[] = {
    { NULL,
      "/weight",
      { { "description", "/comfy_quant", false },
        { "weight", "/weight", false },
        { "scale", "/weight_scale", true },
        { "global_scale", "/weight_scale_2", true },
        { "input_scale", "/input_scale", true } } },
};

static bool recognise(heft_scheme_group *g)
{
    heft_dtype weight = heft_group_dtype(g, "weight");
    g->bits = heft_is_float8(weight) || weight == HEFT_I8 ? 8 : 0;
    return heft_group_dtype(g, "description") == HEFT_U8;
}

const heft_scheme heft_scheme_comfyui = {
    .name = "comfyui",
    .names = names,
    .name_count = 1,
    .recognise = recognise,
};
