/* losses.c - reports losses in the same words for every format. */
#include "format/losses.h"

#include "model/values.h"

heft_status heft_loss_report(heft_plan *p, heft_severity s, const char *rule, uint32_t tensor,
                             const char *fmt, ...)
{
    heft_error formatted;
    va_list ap;
    va_start(ap, fmt);
    heft_error_set_list(&formatted, HEFT_E_LOSSY, HEFT_NOWHERE, fmt, &ap);
    va_end(ap);
    size_t with_end = heft_lit(formatted.message).len + 1;
    heft_str text = heft_arena_copy(p->arena, (heft_str){ formatted.message, with_end });
    if (!text.ptr)
        return heft_error_no_memory(p->err, "for the list of losses");
    return heft_plan_loss(p, s, rule, tensor, text.ptr);
}

/* Emit the name as a glob pattern inside single quotes of a shell; '?' stands for a control
 * character. */
static void put_pattern(heft_out *o, heft_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = (uint8_t)name.ptr[i];
        if (c == '\'')
            heft_out_str(o, heft_lit("'\\''"));
        else if (c == '*' || c == '?' || c == '[' || c == '\\')
            heft_out_u8(o, '\\');
        if (c != '\'')
            heft_out_u8(o, c < ' ' || c == 0x7F ? '?' : c);
    }
}

static heft_status check_quantised(heft_plan *p, uint32_t tensor, bool *is_part)
{
    *is_part = false;
    return p->source.check_quantised ? p->source.check_quantised(p->source.ctx, tensor, is_part)
                                     : HEFT_OK;
}

heft_status heft_loss_tensor(heft_plan *p, const char *rule, uint32_t tensor, const char *why)
{
    bool is_quantised = false;
    heft_plan_drop(p, tensor);
    if (!heft_loss_is_plain(p->x, tensor))
        HEFT_TRY(check_quantised(p, tensor, &is_quantised));
    return is_quantised ? heft_loss_report(p, HEFT_FAULT, rule, tensor,
                                           "%s (it is quantised; decode it: heft convert "
                                           "--dequantize)",
                                           why)
                        : heft_plan_loss(p, HEFT_FAULT, rule, tensor, why);
}

/* Return true if f32 represents every value of the type. */
static bool fits_f32(heft_dtype t)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    bool is_wide = d->block_elems == 1 && d->block_bytes > 2 && t != HEFT_F32;
    return !is_wide && heft_dtype_can_cast(HEFT_F32, t);
}

heft_status heft_loss_type(heft_plan *p, const char *rule, uint32_t tensor, const char *where)
{
    enum { LONGEST = 120 };
    heft_dtype type = heft_ix_row(p->x, tensor)->dtype;
    uint8_t buf[LONGEST];
    heft_out o = { .buf = buf, .cap = sizeof buf };
    const char *refused = "element type %s cannot be stored in %s";
    heft_plan_drop(p, tensor);
    if (!heft_dtype_can_cast(HEFT_F32, type))
        return heft_loss_report(p, HEFT_FAULT, rule, tensor, refused, heft_dtype_name(type), where);
    bool fits = fits_f32(type), is_part;
    HEFT_TRY(check_quantised(p, tensor, &is_part));
    /* --cast matches the names of the input. */
    put_pattern(&o, p->source.name ? p->source.name(p->source.ctx, tensor)
                                   : heft_ix_name(p->x, tensor));
    heft_out_u8(&o, 0);
    const char *pattern = o.st ? "GLOB" : (const char *)buf; /* may be too long for a message */
    const char *quote = o.st ? "" : "'";
    if (!fits)
        return heft_loss_report(p, HEFT_FAULT, rule, tensor,
                                "element type %s cannot be stored in %s (f32 cannot hold all its "
                                "values; leave it out: heft convert --drop %s%s%s)",
                                heft_dtype_name(type), where, quote, pattern, quote);
    if (is_part) /* a cast would lose the scale */
        return heft_loss_report(p, HEFT_FAULT, rule, tensor,
                                "element type %s cannot be stored in %s (it is part of a "
                                "quantised tensor; decode it: heft convert --dequantize)",
                                heft_dtype_name(type), where);
    return heft_loss_report(p, HEFT_FAULT, rule, tensor,
                            "element type %s cannot be stored in %s (cast it: heft convert --cast "
                            "%s%s=f32%s)",
                            heft_dtype_name(type), where, quote, pattern, quote);
}

heft_status heft_loss_index_type(heft_plan *p, const char *rule, uint32_t tensor,
                                 heft_ix_part_row *part, heft_dtype to)
{
    heft_dtype from = part->dtype;
    if (p->existing || from == to || !heft_dtype_can_cast(to, from))
        return HEFT_OK;
    uint64_t elements = heft_div(part->length, heft_dtype_size(from));
    if (!heft_mul(&part->length, elements, heft_dtype_size(to)))
        return heft_error_plain(p->err, HEFT_E_LOSSY, "file would exceed 2^64 bytes");
    part->dtype = to;
    return heft_loss_report(p, HEFT_NOTE, rule, tensor, "%q is converted to %s from %s",
                            heft_ix_role(p->x, part->role), heft_dtype_name(to),
                            heft_dtype_name(from));
}

heft_status heft_loss_scalar(heft_plan *p, const char *rule, uint32_t tensor, const char *where)
{
    const uint64_t one = 1;
    if (heft_ix_row(p->x, tensor)->rank)
        return HEFT_OK;
    heft_status st = heft_plan_reshape(p, tensor, &one, 1);
    return st ? st
              : heft_loss_report(
                    p, HEFT_WARNING, rule, tensor,
                    "rank 0 (a scalar) is stored with the shape [1]: %s has no scalars", where);
}

heft_status heft_loss_as_text(bool *kept, heft_plan *p, heft_value *v, heft_text_losses losses)
{
    char buf[HEFT_F64_TEXT];
    heft_str text;
    *kept = heft_str_is_utf8(v->key) && heft_value_text(&text, v, buf);
    if (!*kept)
        return heft_loss_report(p, HEFT_WARNING, losses.left_out, HEFT_NONE,
                                "metadata %q is left out: %s%s stores only text", v->key,
                                losses.where, losses.version);
    if (v->kind == HEFT_KIND_STR)
        return HEFT_OK;
    text = heft_arena_copy(p->arena, text);
    if (!text.ptr)
        return heft_error_no_memory(p->err, "for metadata");
    v->kind = HEFT_KIND_STR;
    v->as.s = text;
    return heft_loss_report(p, HEFT_NOTE, losses.as_text, HEFT_NONE, "metadata %q becomes text",
                            v->key);
}

heft_status heft_loss_length(heft_plan *p, const char *rule, heft_str key, const char *what,
                             uint64_t bytes, uint64_t limit, const char *where)
{
    enum { SHOWN = 60 }; /* bytes of the key in the message, since the key may be too long */
    heft_str shown = { key.ptr, key.len < SHOWN ? key.len : SHOWN };
    return heft_loss_report(p, HEFT_FAULT, rule, HEFT_NONE,
                            "metadata %q%s: the %s has %U bytes, %s stores at most %U%s", shown,
                            shown.len < key.len ? "..." : "", what, bytes, where, limit,
                            p->existing ? "" : " (--allow-loss leaves it out)");
}

heft_status heft_loss_parts(heft_plan *p, const char *rule, const char *kept, const char *where)
{
    const heft_index *x = p->x;
    for (uint32_t i = 0; i < x->model_parts.len; i++) {
        heft_str role = heft_ix_role(x, heft_ix_part_row_at(x, x->parts.len + i)->role);
        if (kept && heft_str_is(role, kept))
            continue;
        HEFT_TRY(heft_loss_report(p, HEFT_WARNING, rule, HEFT_NONE,
                                  "the file's part %q is left out: %s has no such part", role,
                                  where));
    }
    if (!p->vocab || (kept && heft_str_is(heft_lit(kept), "vocab")))
        return HEFT_OK;
    return heft_loss_report(p, HEFT_WARNING, rule, HEFT_NONE,
                            "the vocabulary of %U tokens is left out: %s stores no vocabulary",
                            (uint64_t)heft_vocab_count(p->vocab), where);
}

heft_status heft_loss_metadata(heft_plan *p, const char *rule, const char *where)
{
    const heft_index *x = p->x;
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i)) {
        HEFT_TRY(heft_loss_report(p, HEFT_WARNING, rule, HEFT_NONE,
                                  "metadata %q is left out: %s stores no metadata",
                                  heft_ix_value(x, i)->key, where));
    }
    return HEFT_OK;
}

typedef struct lost_attributes {
    bool any, scale;
} lost_attributes;

static lost_attributes find_lost(const heft_index *x, uint32_t tensor,
                                 bool (*is_kept)(const heft_value *))
{
    lost_attributes lost = { false, false };
    const heft_ix_attr_row *attrs = x->attrs.ptr;
    uint32_t k = heft_ix_row(x, tensor)->attrs;
    for (; k && k <= x->attrs.len && attrs[k - 1].tensor == tensor; k++) {
        const heft_value *v = &attrs[k - 1].value;
        if (is_kept && is_kept(v))
            continue;
        lost.any = true;
        lost.scale = lost.scale || heft_str_is(v->key, "torch.scale");
    }
    return lost;
}

/* Without the scale the integers of a quantised tensor are other numbers. */
static heft_status report_lost_scale(heft_plan *p, const char *rule, uint32_t tensor)
{
    bool is_part;
    heft_status st = check_quantised(p, tensor, &is_part);
    if (st || !is_part)
        return st;
    return heft_loss_report(p, HEFT_FAULT, rule, HEFT_NONE,
                            "scale and zero point of tensor %q are left out, without which the "
                            "quantised numbers mean something else (--raw-tensors keeps the "
                            "numbers)",
                            heft_ix_name(p->x, tensor));
}

heft_status heft_loss_attributes_except(heft_plan *p, const char *rule, uint8_t kept,
                                        bool (*is_kept)(const heft_value *))
{
    static const char *const what[] = { "requires_grad is", "parameter ids are",
                                        "attributes of tensors are" };
    const heft_index *x = p->x;
    uint32_t counts[3] = { 0 };
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        const heft_ix_tensor_row *row = heft_ix_row(x, t);
        uint8_t flags = (uint8_t)(row->flags & ~kept);
        lost_attributes lost = find_lost(x, t, is_kept);
        counts[0] += !!(flags & HEFT_T_GRAD);
        counts[1] += !!(flags & HEFT_T_PARAM_ID);
        counts[2] += lost.any;
        if (lost.scale)
            HEFT_TRY(report_lost_scale(p, rule, t));
    }
    for (uint32_t i = 0; i < 3; i++)
        if (counts[i])
            HEFT_TRY(heft_loss_report(p, HEFT_WARNING, rule, HEFT_NONE,
                                      "%s left out (tensors that have one: %U)", what[i],
                                      (uint64_t)counts[i]));
    return HEFT_OK;
}

heft_status heft_loss_attributes(heft_plan *p, const char *rule, uint8_t kept)
{
    return heft_loss_attributes_except(p, rule, kept, NULL);
}

bool heft_loss_is_plain(const heft_index *x, uint32_t tensor)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    return row->layout == HEFT_DENSE && row->part_count == 1;
}
