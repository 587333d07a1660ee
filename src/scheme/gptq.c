/* gptq.c - integers packed into 32-bit words along the inputs: qweight [inputs * bits / 32,
 * outputs], scales [groups, outputs], qzeros [groups, outputs * bits / 32], g_idx [inputs]. */
#include "base/checked_math.h"
#include "scheme/recognition.h"

static const heft_scheme_names names[] = {
    { NULL,
      "/weight",
      { { "weight", "/qweight", false },
        { "scale", "/scales", false },
        { "zero_point", "/qzeros", true },
        { "group_index", "/g_idx", true } } },
};

/* The words of a column hold all inputs, and the words of the zero points all outputs. */
static bool recognise(heft_scheme_group *g)
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
    .names = names,
    .name_count = sizeof names / sizeof *names,
    .recognise = recognise,
};
