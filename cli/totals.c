#include "totals.h"

static uint64_t saturated(uint64_t a, uint64_t b)
{
    return a < UINT64_MAX - b ? a + b : UINT64_MAX;
}

void totals_add(totals *sum, const heft_file *f, const uint32_t *tied, uint32_t id)
{
    heft_tensor t = heft_tensor_at(f, id);
    uint64_t bytes = heft_tensor_bytes(f, id);
    sum->tensors++;
    if (tied && tied[id] != id)
        return;
    sum->parameters = saturated(sum->parameters, tensor_elements(&t));
    sum->bytes = saturated(sum->bytes, bytes == HEFT_UNKNOWN_LENGTH ? 0 : bytes);
}

void out_size_or_bytes(outbuf *o, uint64_t bytes, bool as_bytes)
{
    if (as_bytes)
        out_u64(o, bytes);
    else
        out_size(o, bytes);
}

void out_totals(outbuf *o, const totals *sum, bool as_bytes)
{
    out_u64(o, sum->tensors);
    out_text(o, sum->tensors == 1 ? " tensor, " : " tensors, ");
    out_count(o, sum->parameters);
    out_text(o, sum->parameters == 1 ? " parameter, " : " parameters, ");
    out_size_or_bytes(o, sum->bytes, as_bytes);
    out_text(o, as_bytes ? " bytes\n" : "\n");
}
