/* mlx.c - integers of 2 to 8 bits as a dense stream of 32-bit words along a row, times a scale,
 * plus a bias; or mxfp4, mxfp8 and nvfp4 in the same words, without biases. */
#include "base/checked_math.h"
#include "scheme/recognition.h"

static const heft_scheme_names names[] = {
    { NULL,
      "/weight",
      { { "scale", "/scales", false },
        { "weight", "/weight", false },
        { "bias", "/biases", true },
        { "global_scale", "/global_scale", true } } },
};

/* The words of a group hold bits * group bits, so one number gives the other. */
static bool recognise(heft_scheme_group *g)
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
    .names = names,
    .name_count = sizeof names / sizeof *names,
    .recognise = recognise,
};
