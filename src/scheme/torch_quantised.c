/* torch_quantised.c - PyTorch's quantised tensors: integers whose scale and zero point are
 * attributes, or tensors with a number for each channel, as the reader of PyTorch files states
 * them. */
#include "scheme/recognition.h"

static const heft_scheme_names names[] = {
    { NULL,
      "",
      { { "weight", "", false },
        { "scale", ".scale", true },
        { "zero_point", ".zero_point", true } } },
};

static bool recognise(heft_scheme_group *g)
{
    const heft_dtype_info *d = heft_dtype_get(heft_group_dtype(g, "weight"));
    g->bits = d && d->block_elems == 1 ? 8U * d->block_bytes : 0;
    g->variant = heft_group_part(g, "scale") == HEFT_NONE ? "per tensor" : "per channel";
    return true;
}

const heft_scheme heft_scheme_torch = {
    .name = "torch",
    .names = names,
    .name_count = 1,
    .attribute = "torch.qscheme",
    .recognise = recognise,
};
