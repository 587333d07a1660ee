/* quantised_check.c - refuses changes that take parts of quantised tensors for numbers. */
#include "core/write/quantised_check.h"

#include "base/error.h"
#include "base/text.h"

/* Find the quantised tensors of the input, unless the caller or an earlier call has. */
static heft_status find_schemes(const heft_schemes **out, heft_conversion *c)
{
    heft_status st = HEFT_OK;
    if (!c->opt.schemes && !c->schemes)
        st = heft_schemes_open(&c->schemes, c->in, NULL, c->err);
    *out = c->opt.schemes ? c->opt.schemes : c->schemes;
    return st;
}

/* Return the first part with that role, or NULL in role if there is none. */
static heft_quantised_part find_role(const heft_schemes *s, uint32_t quantised, const char *role)
{
    uint32_t count = heft_schemes_at(s, quantised).part_count;
    for (uint32_t k = 0; k < count; k++) {
        heft_quantised_part p = heft_schemes_part_at(s, quantised, k);
        if (heft_str_is(heft_lit(p.role), role))
            return p;
    }
    return (heft_quantised_part){ HEFT_NONE, NULL };
}

static const char *role_of(const heft_schemes *s, uint32_t quantised, uint32_t tensor)
{
    uint32_t k = 0;
    while (heft_schemes_part_at(s, quantised, k).tensor != tensor)
        k++;
    return heft_schemes_part_at(s, quantised, k).role;
}

/* Return the scale, or else what plays a similar part. */
static heft_quantised_part find_scale(const heft_schemes *s, uint32_t quantised)
{
    static const char *const roles[] = { "scale", "global_scale", "absmax", "codebook",
                                         "description" };
    heft_quantised_part p = { HEFT_NONE, NULL };
    for (size_t i = 0; i < sizeof roles / sizeof *roles && !p.role; i++)
        p = find_role(s, quantised, roles[i]);
    return p;
}

static heft_status refuse(heft_conversion *c, const heft_schemes *s, uint32_t quantised,
                          uint32_t tensor, const char *change)
{
    const heft_quantised q = heft_schemes_at(s, quantised);
    heft_str name = heft_ix_name(&c->in->x, tensor);
    const char *role = role_of(s, quantised, tensor);
    bool is_weight = heft_str_is(heft_lit(role), "weight");
    heft_quantised_part other = is_weight ? find_scale(s, quantised)
                                          : find_role(s, quantised, "weight");
    heft_str partner = other.role ? heft_ix_name(&c->in->x, other.tensor) : q.name;
    char scheme[32] = "";
    memcpy(scheme, q.scheme.ptr, q.scheme.len < sizeof scheme ? q.scheme.len : sizeof scheme - 1);
    if (heft_str_is(heft_lit(role), "data"))
        return heft_error_plain(c->err, HEFT_E_UNSUPPORTED,
                                "the settings say that the model is quantised (%s), and tensor %q "
                                "is beside packed numbers: %s would lose what they mean",
                                scheme, name, change);
    if (!is_weight)
        return heft_error_plain(c->err, HEFT_E_UNSUPPORTED,
                                "tensor %q is the %s of the quantised tensor %q (%s): %s could "
                                "change what the numbers mean",
                                name, role, partner, scheme, change);
    if (!other.role)
        return heft_error_plain(c->err, HEFT_E_UNSUPPORTED,
                                "tensor %q is quantised (%s, scaled by its attributes): %s would "
                                "lose the scale",
                                name, scheme, change);
    return heft_error_plain(c->err, HEFT_E_UNSUPPORTED,
                            "tensor %q is quantised (%s, scaled by %q): %s would lose the scale",
                            name, scheme, partner, change);
}

heft_status heft_refuse_quantised(heft_conversion *c, uint32_t tensor, const char *change)
{
    const heft_schemes *s;
    if (c->opt.raw_tensors)
        return HEFT_OK;
    heft_status st = find_schemes(&s, c);
    uint32_t quantised = st ? HEFT_NONE : heft_schemes_find(s, tensor);
    if (st || quantised == HEFT_NONE)
        return st;
    return heft_error_rule(c->err, refuse(c, s, quantised, tensor, change), "heft/quantised");
}
