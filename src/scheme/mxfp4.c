/* mxfp4.c - numbers of 4 bits (E2M1), two in a byte, with a power of two for 32 elements of a
 * row. */
#include "scheme/recognition.h"

static const heft_scheme_names names[] = {
    { "gpt-oss", "", { { "weight", "_blocks", false }, { "scale", "_scales", false } } },
    { "gpt-oss", "", { { "weight", ".blocks", false }, { "scale", ".scales", false } } },
    { "compressed-tensors",
      "",
      { { "weight", "_packed", false },
        { "scale", "_scale", false },
        { "shape", "_shape", true } } },
    { "DeepSeek", "/weight", { { "scale", "/scale", false }, { "weight", "/weight", false } } },
};

/* Two elements in a byte.  gpt-oss stores the 16 bytes of a group as a dimension of their own. */
static bool recognise(heft_scheme_group *g)
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
    .names = names,
    .name_count = sizeof names / sizeof *names,
    .recognise = recognise,
};
