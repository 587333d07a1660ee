/* refuse.c - refuses changes that take parts of quantised tensors for numbers. */
#include "scheme/refuse.h"

#include <heft/scheme.h>

#include "base/error.h"
#include "base/text.h"

/* ---- the quantised tensors of a file, found once ---- */

/* Several threads may find the quantised tensors at the same time: the first publishes them. */
heft_status heft_schemes_of_file(const heft_schemes **out, const heft_file *f, heft_error *err)
{
    heft_file *file = (heft_file *)(uintptr_t)f;
    heft_schemes *s = (heft_schemes *)heft_atomic_load_published(&f->schemes);
    if (!s) {
        HEFT_TRY(heft_schemes_open(&s, f, NULL, err));
        if (heft_atomic_publish_first(&file->schemes, (size_t)s)) {
            file->close_schemes = heft_schemes_close;
        } else {
            heft_schemes_close(s);
            s = (heft_schemes *)heft_atomic_load_published(&f->schemes);
        }
    }
    *out = s;
    return HEFT_OK;
}

/* ---- the message ---- */

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

heft_status heft_refuse_part(const heft_file *f, const heft_schemes *s, uint32_t tensor,
                             const char *change, const char *hint, heft_error *err)
{
    heft_status st = s ? HEFT_OK : heft_schemes_of_file(&s, f, err);
    uint32_t quantised = st ? HEFT_NONE : heft_schemes_find(s, tensor);
    if (quantised == HEFT_NONE)
        return st;
    const heft_quantised q = heft_schemes_at(s, quantised);
    heft_str name = heft_ix_name(&f->x, tensor);
    const char *role = role_of(s, quantised, tensor);
    bool is_weight = heft_str_is(heft_lit(role), "weight");
    heft_quantised_part other = is_weight ? find_scale(s, quantised)
                                          : find_role(s, quantised, "weight");
    heft_str partner = other.role ? heft_ix_name(&f->x, other.tensor) : q.name;
    char scheme[32] = "";
    memcpy(scheme, q.scheme.ptr, q.scheme.len < sizeof scheme ? q.scheme.len : sizeof scheme - 1);

    if (heft_str_is(heft_lit(role), "data"))
        st = heft_error_plain(err, HEFT_E_UNSUPPORTED,
                              "the settings say that the model is quantised (%s), and tensor %q "
                              "is beside packed numbers: %s would lose what they mean%s",
                              scheme, name, change, hint);
    else if (!is_weight)
        st = heft_error_plain(err, HEFT_E_UNSUPPORTED,
                              "tensor %q is the %s of the quantised tensor %q (%s): %s could "
                              "change what the numbers mean%s",
                              name, role, partner, scheme, change, hint);
    else if (!other.role)
        st = heft_error_plain(err, HEFT_E_UNSUPPORTED,
                              "tensor %q is quantised (%s, scaled by its %s): %s would lose the "
                              "scale%s",
                              name, scheme,
                              heft_ix_row(&f->x, tensor)->layout ? "own bytes" : "attributes",
                              change, hint);
    else
        st = heft_error_plain(err, HEFT_E_UNSUPPORTED,
                              "tensor %q is quantised (%s, scaled by %q): %s would lose the "
                              "scale%s",
                              name, scheme, partner, change, hint);
    return heft_error_rule(err, st, "heft/quantised");
}

heft_status heft_refuse_cast(const heft_file *f, uint32_t tensor, heft_error *err)
{
    return f->raw_tensors ? HEFT_OK
                          : heft_refuse_part(f, NULL, tensor, "a cast",
                                             " (raw_tensors casts the stored numbers)", err);
}
