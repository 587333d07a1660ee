/* torch_quantised.c - PyTorch's quantised tensors: integers whose scale and zero point are
 * attributes, as the reader of PyTorch files states them. */
#include "scheme/recognition.h"

static const heft_scheme_names names[] = { { NULL, "", { { "weight", "", false } } } };

static bool recognise(heft_scheme_group *g)
{
    const heft_dtype_info *d = heft_dtype_get(heft_group_dtype(g, "weight"));
    g->bits = d && d->block_elems == 1 ? 8U * d->block_bytes : 0;
    return true;
}

const heft_scheme heft_scheme_torch = {
    .name = "torch",
    .names = names,
    .name_count = 1,
    .attribute = "torch.qscheme",
    .recognise = recognise,
};
