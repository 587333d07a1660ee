/* torch_rebuild.c - chooses how a written tensor is rebuilt: the element type by stored_dtype, the
 * quantizer by the attributes that reading a quantized tensor gives. */
#include "format/torch/torch_write.h"

static const char qscheme[] = "torch.qscheme", scale[] = "torch.scale";
static const char zero_point[] = "torch.zero_point", stored_dtype[] = "stored_dtype";

bool heft_torch_keeps_attribute(const heft_value *v)
{
    if (heft_str_is(v->key, stored_dtype))
        return v->kind == HEFT_KIND_STR && heft_torch_type_named(v->as.s);
    if (heft_str_is(v->key, qscheme))
        return v->kind == HEFT_KIND_STR;
    return (heft_str_is(v->key, scale) && v->kind == HEFT_KIND_FLOAT) ||
           (heft_str_is(v->key, zero_point) && v->kind == HEFT_KIND_INT);
}

/* The attributes that describe a quantizer. */
typedef struct quantizer {
    heft_value scheme, scale, zero_point; /* kind NULL: the tensor has none */
} quantizer;

static quantizer read_quantizer(const heft_index *x, uint32_t tensor)
{
    quantizer q = { .scheme = { .kind = HEFT_KIND_NULL } };
    heft_value v;
    for (uint32_t i = 0; heft_ix_attribute(&v, x, tensor, i); i++) {
        if (!heft_torch_keeps_attribute(&v))
            continue;
        if (heft_str_is(v.key, qscheme))
            q.scheme = v;
        else if (heft_str_is(v.key, scale))
            q.scale = v;
        else if (heft_str_is(v.key, zero_point))
            q.zero_point = v;
    }
    return q;
}

static bool is_affine(const quantizer *q)
{
    return q->scheme.kind && heft_str_is(q->scheme.as.s, "torch.per_tensor_affine") &&
           q->scale.kind && q->zero_point.kind;
}

heft_torch_rebuild heft_torch_rebuild_as(heft_dtype type)
{
    heft_torch_rebuild r = { .type = heft_torch_type_stored_as(type) };
    r.form = r.type && r.type->storage ? HEFT_TORCH_PLAIN : HEFT_TORCH_TYPED;
    return r;
}

const heft_torch_layout *heft_torch_layout_of(const heft_index *x, uint32_t tensor)
{
    const heft_torch_layout *l = heft_torch_layouts;
    heft_str layout = heft_ix_layout(x, tensor);
    for (uint32_t i = 0; i < HEFT_TORCH_LAYOUTS; i++)
        if (heft_str_is(layout, l[i].layout))
            return &l[i];
    return NULL;
}

heft_torch_rebuild heft_torch_rebuild_of(const heft_index *x, uint32_t tensor)
{
    heft_dtype dtype = heft_ix_row(x, tensor)->dtype;
    heft_str stored = heft_ix_stored_dtype(x, tensor);
    const heft_torch_type *named = stored.ptr ? heft_torch_type_named(stored) : NULL;
    quantizer q = read_quantizer(x, tensor);
    bool has_quantizer = q.scheme.kind || q.scale.kind || q.zero_point.kind;
    bool is_quantized = named && named->is_quantized;
    heft_torch_rebuild r = heft_torch_rebuild_as(dtype);
    r.scale = q.scale;
    r.zero_point = q.zero_point;
    if (named && named->type == dtype)
        r.type = named;
    if (named && r.type != named)
        r.lost = "the element type that stored_dtype names does not fit";
    else if (is_quantized != has_quantizer || (is_quantized && !is_affine(&q)))
        r.lost = "only a quantized tensor with one scale and one zero point can be stored";
    r.form = is_quantized                ? HEFT_TORCH_QUANTIZED
             : r.type && r.type->storage ? HEFT_TORCH_PLAIN
                                         : HEFT_TORCH_TYPED;
    return r;
}
