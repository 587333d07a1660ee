/* compressed_tensors.c - integers packed into 32-bit words along a row, or integers of 8 bits, with
 * scales and perhaps zero points: (q - zero point) * scale. */
#include "scheme/recognition.h"

static const heft_scheme_names names[] = {
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
static bool recognise_packed(heft_scheme_group *g)
{
    g->bits = g->settings->bits;
    if (heft_group_dim(g, "scale", 0) == 1)
        heft_group_rows(g, 0);
    else if (g->settings->has_group)
        heft_group_rows(g, g->settings->group);
    return true;
}

static bool recognise(heft_scheme_group *g)
{
    heft_dtype weight = heft_group_dtype(g, "weight"), scale = heft_group_dtype(g, "scale");
    if (!heft_is_packed(weight) || !heft_is_scale(scale))
        return false;
    if (g->names == names)
        return recognise_packed(g);
    g->bits = 8;
    return weight == HEFT_I8 && heft_group_rank(g, "weight") > 1 &&
           heft_group_blocks(g, heft_group_dim(g, "weight", 1), heft_group_dim(g, "weight", 0));
}

const heft_scheme heft_scheme_compressed_tensors = {
    .name = "compressed-tensors",
    .names = names,
    .name_count = sizeof names / sizeof *names,
    .recognise = recognise,
};
