/* burnpack_scheme_write.c - element types of quantized tensors: conversion of stored_dtype to
 * the CBOR that the target generation of Burn reads. */
#include "format/burnpack/burnpack.h"
#include "format/losses.h"

/* Set *out to the output of put(), in the plan's arena, or to NULL if put() fails or `from` is
 * NULL. */
static heft_status encode(heft_plan *p, heft_str *out, heft_str from, uint32_t generation,
                          bool (*put)(heft_out *o, heft_str from, uint32_t generation))
{
    heft_out o = heft_out_counting();
    *out = (heft_str){ NULL, 0 };
    if (!from.ptr || !put(&o, from, generation))
        return HEFT_OK;
    o = (heft_out){ .cap = (size_t)o.total, .buf = heft_plan_alloc(p, (size_t)o.total) };
    if (!o.buf)
        return HEFT_E_NOMEM;
    put(&o, from, generation);
    *out = (heft_str){ (const char *)o.buf, o.len };
    return HEFT_OK;
}

static bool put_stored_dtype(heft_out *o, heft_str stored, uint32_t generation)
{
    (void)generation;
    return heft_burnpack_put_stored_dtype(o, stored);
}

static bool put_scheme(heft_out *o, heft_str cbor, uint32_t generation)
{
    heft_burnpack_put_scheme(o, cbor, generation);
    return true;
}

static bool is_quantized_type(heft_plan *p, heft_str cbor)
{
    heft_cbor c = heft_cbor_open(cbor.ptr, cbor.len, 0, HEFT_CBOR_DEPTH, p->arena, NULL);
    return heft_cbor_next(&c) == HEFT_CBOR_MAP && c.u == 1 && !c.flags &&
           heft_cbor_next(&c) == HEFT_CBOR_TEXT && heft_str_is(c.str, "QFloat") &&
           !heft_cbor_skip(&c, heft_cbor_next(&c)) && heft_cbor_next(&c) == HEFT_CBOR_MAP_END &&
           c.p == c.end;
}

/* Set s->cbor and s->target_cbor.  Do nothing for the stored_dtype of the last call:
 * neighbouring tensors often have the same scheme. */
static heft_status update_encoding(heft_plan *p, heft_burnpack_scheme_plan *s, heft_str stored)
{
    if (s->stored.ptr && stored.ptr && heft_str_eq(s->stored, stored))
        return HEFT_OK;
    heft_status st = encode(p, &s->cbor, stored, 0, put_stored_dtype);
    if (!st && s->cbor.ptr && !is_quantized_type(p, s->cbor))
        s->cbor.ptr = NULL;
    s->target_cbor = s->cbor;
    if (!st && !p->existing)
        st = encode(p, &s->target_cbor, s->cbor, s->target->bit, put_scheme);
    s->stored = st ? (heft_str){ NULL, 0 } : stored;
    return st;
}

static heft_status report_unsupported(heft_plan *p, const heft_burnpack_scheme_plan *s, uint32_t t,
                                      uint32_t targets)
{
    enum { MAX_NAMES = 64 };
    char names[MAX_NAMES]; /* "0.22 or 0.22-pre.2" */
    if (!targets)
        return heft_loss_tensor(p, "burnpack/scheme", t,
                                "no known release of Burn reads its quantization scheme");
    heft_plan_drop(p, t);
    heft_out o = { .buf = (uint8_t *)names, .cap = sizeof names };
    for (uint32_t i = 0; i < HEFT_BURNPACK_GENERATIONS; i++) {
        const heft_burnpack_generation *g = &heft_burnpack_generations[i];
        if (!(g->bit & targets) || !g->can_write)
            continue;
        heft_out_str(&o, heft_lit(o.len ? " or " : ""));
        heft_out_str(&o, heft_lit(g->name));
    }
    heft_out_u8(&o, '\0');
    return heft_loss_report(p, HEFT_FAULT, "burnpack/scheme", t,
                            "Burn %s cannot read its quantization scheme, but Burn %s can (use "
                            "--format-version)",
                            s->target->name, names);
}

heft_status heft_burnpack_plan_scheme(heft_plan *p, heft_burnpack_scheme_plan *s, heft_str stored,
                                      uint32_t tensor)
{
    HEFT_TRY(update_encoding(p, s, stored));
    if (!s->cbor.ptr)
        return heft_loss_tensor(p, "burnpack/tensor", tensor,
                                "a quantized tensor without a quantization scheme in its "
                                "stored_dtype cannot be stored in a Burnpack");
    if (p->existing || heft_burnpack_scheme_generations(s->cbor) & s->target->bit)
        return HEFT_OK;
    uint32_t targets = heft_burnpack_scheme_targets(s->cbor, heft_ix_dims(p->x, tensor),
                                                    heft_ix_row(p->x, tensor)->rank);
    if (!(targets & s->target->bit))
        return report_unsupported(p, s, tensor, targets);
    if (s->noted_reencoding)
        return HEFT_OK;
    s->noted_reencoding = true;
    return heft_loss_report(p, HEFT_NOTE, "burnpack/scheme", tensor,
                            "its quantization scheme is rewritten for Burn %s (there may be more)",
                            s->target->name);
}

heft_status heft_burnpack_encode_scheme(heft_plan *p, heft_burnpack_scheme_plan *s, heft_str stored,
                                        uint32_t tensor)
{
    heft_status st = update_encoding(p, s, stored);
    if (!st && !s->by_tensor)
        s->by_tensor = heft_plan_alloc(p, heft_ix_tensors(p->x) * sizeof *s->by_tensor);
    if (st || !s->by_tensor)
        return st ? st : HEFT_E_NOMEM;
    s->by_tensor[tensor] = s->target_cbor;
    return HEFT_OK;
}
