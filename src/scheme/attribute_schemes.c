/* attribute_schemes.c - schemes that the readers of ONNX, PyTorch and Burn state by attributes of
 * a tensor. */
#include "base/text.h"
#include "scheme/qfloat_scheme.h"
#include "scheme/recognition.h"

/* ---- ONNX ---- */

static const heft_scheme_names onnx_names[] = {
    { NULL,
      "",
      { { "weight", "", false },
        { "scale", "@onnx.scale", false },
        { "zero_point", "@onnx.zero_point", true },
        { "group_index", "@onnx.group_index", true } } },
};

int64_t heft_onnx_number(const heft_index *x, uint32_t tensor, const char *key)
{
    heft_value v;
    return heft_ix_find_attribute(&v, x, tensor, key) && v.kind == HEFT_KIND_INT ? v.as.i : 0;
}

uint32_t heft_onnx_packed_bits(const heft_index *x, uint32_t tensor, bool *is_signed)
{
    heft_value v;
    static const struct {
        const char *name;
        uint8_t bits;
        bool is_signed;
    } types[] = {
        { "uint4", 4, false }, { "int4", 4, true }, { "uint2", 2, false }, { "int2", 2, true }
    };
    *is_signed = false;
    if (heft_ix_find_attribute(&v, x, tensor, "onnx.type") && v.kind == HEFT_KIND_STR)
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            if (heft_str_is(v.as.s, types[i].name)) {
                *is_signed = types[i].is_signed;
                return types[i].bits;
            }
    return 0;
}

static bool is_matmul(const heft_index *x, uint32_t tensor)
{
    heft_value v;
    return heft_ix_find_attribute(&v, x, tensor, "onnx.operator") && v.kind == HEFT_KIND_STR &&
           heft_str_is(v.as.s, "MatMulNBits");
}

static bool recognise_onnx(heft_scheme_group *g)
{
    uint32_t tensor = heft_group_part(g, "weight");
    const heft_dtype_info *d = heft_dtype_get(heft_group_dtype(g, "weight"));
    bool is_signed;
    g->bits = heft_onnx_packed_bits(g->x, tensor, &is_signed);
    if (is_matmul(g->x, tensor))
        g->bits = (uint32_t)heft_onnx_number(g->x, tensor, "onnx.bits");
    else if (!g->bits && d && d->block_bytes)
        g->bits = 8U * d->block_bytes / d->block_elems;
    g->variant = is_matmul(g->x, tensor) ? "MatMulNBits" : "DequantizeLinear";
    int64_t block = heft_onnx_number(g->x, tensor, "onnx.block_size");
    if (block > 0)
        heft_group_rows(g, (uint64_t)block);
    return true;
}

const heft_scheme heft_scheme_onnx = {
    .name = "onnx",
    .names = onnx_names,
    .name_count = 1,
    .attribute = "onnx.operator",
    .recognise = recognise_onnx,
};

/* ---- PyTorch ---- */

static const heft_scheme_names torch_names[] = {
    { NULL,
      "",
      { { "weight", "", false },
        { "scale", ".scale", true },
        { "zero_point", ".zero_point", true } } },
};

bool heft_torch_has_pairs(const heft_index *x, uint32_t tensor)
{
    return heft_str_is(heft_ix_stored_dtype(x, tensor), "quint4x2");
}

static bool recognise_torch(heft_scheme_group *g)
{
    const heft_dtype_info *d = heft_dtype_get(heft_group_dtype(g, "weight"));
    g->bits = d && d->block_elems == 1 ? 8U * d->block_bytes : 0;
    if (heft_torch_has_pairs(g->x, heft_group_part(g, "weight")))
        g->bits = 4;
    g->variant = heft_group_part(g, "scale") == HEFT_NONE ? "per tensor" : "per channel";
    return true;
}

const heft_scheme heft_scheme_torch = {
    .name = "torch",
    .names = torch_names,
    .name_count = 1,
    .attribute = "torch.qscheme",
    .recognise = recognise_torch,
};

/* ---- Burn ---- */

static const heft_scheme_names burn_names[] = {
    { NULL, "", { { "weight", "", false } } },
};

/* A scheme that no known release writes is recognised, too: nobody shall take its bytes for
 * numbers. */
static bool recognise_qfloat(heft_scheme_group *g)
{
    uint32_t tensor = heft_group_part(g, "weight");
    heft_qfloat_scheme s;
    if (!heft_str_is(heft_ix_layout(g->x, tensor), heft_scheme_qfloat.layout))
        return false;
    if (!heft_qfloat_scheme_read(&s, heft_ix_stored_dtype(g->x, tensor)))
        return true;
    g->bits = s.bits;
    g->variant = s.value;
    if (s.size_count)
        heft_group_rows(g, s.size[s.size_count - 1]);
    if (s.size_count > 1)
        g->block[0] = s.size[s.size_count - 2];
    g->has_block = g->has_block || s.value; /* 0 x 0: the whole tensor */
    return true;
}

const heft_scheme heft_scheme_qfloat = {
    .name = "qfloat",
    .names = burn_names,
    .name_count = 1,
    .attribute = "stored_dtype",
    .layout = "burn.qfloat",
    .recognise = recognise_qfloat,
};
