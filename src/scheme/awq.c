/* awq.c - integers packed into 32-bit words along the outputs: qweight [inputs, outputs * bits /
 * 32], scales [groups, outputs], qzeros [groups, outputs * bits / 32]. */
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

static bool recognise(heft_scheme_group *g)
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
    .names = names,
    .name_count = sizeof names / sizeof *names,
    .recognise = recognise,
};
