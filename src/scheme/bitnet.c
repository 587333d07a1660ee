/* bitnet.c - numbers -1, 0 and 1 in 2 bits: the four rows of a byte are a quarter of the rows
 * apart, and one scale divides the whole tensor. */
#include "scheme/recognition.h"

static const heft_scheme_names names[] = {
    { NULL, "/weight", { { "scale", "/weight_scale", false }, { "weight", "/weight", false } } },
};

static bool recognise(heft_scheme_group *g)
{
    g->bits = 2;
    g->has_block = true;
    return heft_group_dtype(g, "weight") == HEFT_U8 && heft_group_rank(g, "weight") == 2 &&
           heft_is_scale(heft_group_dtype(g, "scale")) && heft_group_is_scalar(g, "scale");
}

const heft_scheme heft_scheme_bitnet = {
    .name = "bitnet",
    .names = names,
    .name_count = 1,
    .recognise = recognise,
};
