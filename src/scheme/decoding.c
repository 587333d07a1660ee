/* decoding.c - what schemes ask while they prepare a quantised tensor: its shape, its scales. */
#include "scheme/decoding.h"

#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"

const char *heft_role_name(heft_role role)
{
    static const char *const names[HEFT_ROLES] = {
        [HEFT_ROLE_WEIGHT] = "weight",
        [HEFT_ROLE_SCALE] = "scale",
        [HEFT_ROLE_GLOBAL_SCALE] = "global_scale",
        [HEFT_ROLE_ZERO_POINT] = "zero_point",
        [HEFT_ROLE_GROUP_INDEX] = "group_index",
        [HEFT_ROLE_SHAPE] = "shape",
        [HEFT_ROLE_BIAS] = "bias",
        [HEFT_ROLE_ABSMAX] = "absmax",
        [HEFT_ROLE_QUANT_MAP] = "quant_map",
        [HEFT_ROLE_NESTED_ABSMAX] = "nested_absmax",
        [HEFT_ROLE_NESTED_MAP] = "nested_quant_map",
        [HEFT_ROLE_QUANT_STATE] = "quant_state",
        [HEFT_ROLE_FORMAT] = "format",
        [HEFT_ROLE_DESCRIPTION] = "description",
        [HEFT_ROLE_PRE_SCALE] = "pre_quant_scale",
    };
    return names[role];
}

/* ---- errors ---- */

heft_status heft_decoding_refuse(const heft_decoding *d, heft_role role, const char *why,
                                 heft_error *err)
{
    const heft_decoding_part *p = heft_decoding_part_of(d, role);
    heft_status st;
    if (role == HEFT_ROLE_WEIGHT || !p)
        st = heft_error_plain(err, HEFT_E_FORMAT, "quantised tensor %q (%s): its %s %s", d->name,
                              d->scheme->name, heft_role_name(role), p ? why : "is missing");
    else
        st = heft_error_plain(err, HEFT_E_FORMAT, "quantised tensor %q (%s): its %s %q %s", d->name,
                              d->scheme->name, heft_role_name(role),
                              heft_ix_name(&d->f->x, p->tensor), why);
    return heft_error_rule(err, st, "heft/quantised");
}

/* ---- shapes ---- */

heft_status heft_decoding_set_shape(heft_decoding *d, uint64_t rows, uint64_t columns,
                                    heft_error *err)
{
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    uint32_t lead = w->rank > 2 ? w->rank - 2 : 0;
    uint64_t elements = rows, bytes;
    if (lead + 2 > HEFT_LOGICAL_RANK)
        return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT, "has too many dimensions", err);
    d->rank = lead + 2;
    d->rows = rows;
    d->columns = columns;
    d->stack = 1;
    bool fits = heft_mul(&elements, elements, columns);
    for (uint32_t i = 0; i < lead; i++) {
        d->dims[i] = w->dims[i];
        d->stack *= w->dims[i];
        fits = fits && heft_mul(&elements, elements, w->dims[i]);
    }
    d->dims[lead] = rows;
    d->dims[lead + 1] = columns;
    if (!fits || !heft_dtype_bytes(&bytes, HEFT_F32, elements))
        return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT, "is too large", err);
    return HEFT_OK;
}

heft_status heft_decoding_take_shape(heft_decoding *d, uint64_t per_element, heft_error *err)
{
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    uint64_t columns;
    if (!heft_mul(&columns, heft_decoding_dim(w, 0), per_element))
        return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT, "is too large", err);
    HEFT_TRY(heft_decoding_set_shape(d, heft_decoding_dim(w, 1), columns, err));
    if (w->rank < 2) { /* a vector stays one */
        d->rank = w->rank;
        d->dims[0] = columns;
    }
    return HEFT_OK;
}

/* Return the size of blocks of which `count` cover `total`: the stated size if it fits. */
static uint64_t block_of(uint64_t total, uint64_t count, uint64_t stated)
{
    if (count == 1)
        return total;
    if (count == total)
        return 1;
    return stated && heft_div(total - 1, stated) + 1 == count ? stated : 0;
}

heft_status heft_decoding_set_grid(heft_decoding *d, heft_role role, heft_error *err)
{
    const heft_decoding_part *s = heft_decoding_part_of(d, role);
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    heft_scale_grid *g = &d->grid;
    if (!s)
        return heft_decoding_refuse(d, role, "is missing", err);
    *g = (heft_scale_grid){ .down = 1, .across = 1 };
    g->height = d->rows ? d->rows : 1;
    g->width = d->columns ? d->columns : 1;
    if (s->elements == 1 || !d->rows || !d->columns)
        return HEFT_OK;
    if (s->rank == 1 && s->elements == d->rows && d->stack == 1) {
        g->down = d->rows;
    } else if (s->rank == 1 && s->elements == d->stack) {
        g->matrix = 1;
    } else if (w->rank == 2 && s->rank == 4 && s->dims[1] == 1 && s->dims[3] == 1) {
        g->down = s->dims[0]; /* ModelOpt keeps the blocks as dimensions of 1 */
        g->across = s->dims[2];
    } else {
        g->down = heft_decoding_dim(s, 1);
        g->across = heft_decoding_dim(s, 0);
        bool is_like = s->rank == w->rank && s->rank >= 2;
        for (uint32_t i = 0; is_like && i + 2 < s->rank; i++)
            is_like = s->dims[i] == w->dims[i];
        if (!is_like)
            return heft_decoding_refuse(d, role, "has another number of dimensions or matrices",
                                        err);
        g->matrix = d->stack > 1 ? g->down * g->across : 0;
    }
    if (!g->down || !g->across || g->down > d->rows || g->across > d->columns)
        return heft_decoding_refuse(d, role, "has more numbers than the weight", err);
    g->height = block_of(d->rows, g->down, d->block[0]);
    g->width = block_of(d->columns, g->across, d->block[1]);
    return g->height && g->width
               ? HEFT_OK
               : heft_decoding_refuse(d, role, "has a shape that does not divide the weight", err);
}

void heft_decoding_set_type(heft_decoding *d, heft_role role)
{
    heft_dtype t = d->part[role].dtype;
    d->dtype = t == HEFT_F16 ? HEFT_F16 : HEFT_BF16;
}

heft_status heft_decoding_scalar(const heft_decoding *d, heft_role role, float *out,
                                 heft_error *err)
{
    const heft_decoding_part *p = heft_decoding_part_of(d, role);
    uint8_t raw[8];
    if (!p || p->elements != 1 || !p->bytes || p->bytes > sizeof raw)
        return heft_decoding_refuse(d, role, "is not a single number", err);
    HEFT_TRY(heft_part_read(raw, d->f, p->part, 0, (size_t)p->bytes, err));
    if (!heft_floats_from(out, p->dtype, raw, 1))
        HEFT_TRY(heft_decoding_refuse(d, role, "is not a number", err));
    return HEFT_OK;
}

heft_status heft_decoding_set_factor(heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *p = heft_decoding_part_of(d, HEFT_ROLE_GLOBAL_SCALE);
    d->has_factors = p && d->stack > 1 && p->elements == d->stack && heft_is_scale(p->dtype);
    return d->has_factors ? HEFT_OK
                          : heft_decoding_scalar(d, HEFT_ROLE_GLOBAL_SCALE, &d->factor, err);
}
