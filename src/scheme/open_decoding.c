/* open_decoding.c - finds the parts of a quantised tensor and lets its scheme check them. */
#include "base/error.h"
#include "base/text.h"
#include "scheme/decoding.h"

static heft_status find_part(heft_decoding *d, const heft_quantised_part *q, heft_error *err)
{
    const heft_index *x = &d->f->x;
    const heft_ix_tensor_row *t = heft_ix_row(x, q->tensor);
    for (int k = 0; k < HEFT_ROLES; k++) {
        if (!heft_str_is(heft_lit(q->role), heft_role_name((heft_role)k)))
            continue;
        uint32_t part = heft_ix_part_find(x, q->tensor, heft_ix_data);
        const heft_ix_part_row *row = part == HEFT_NONE ? NULL : heft_ix_part_row_at(x, part);
        bool is_known = t->layout == HEFT_DENSE || d->scheme->layout;
        if (!row || !is_known || row->length == HEFT_UNKNOWN_LENGTH)
            return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                    "tensor %q: its %s %q is not dense: it cannot be decoded",
                                    d->name, q->role, heft_ix_name(x, q->tensor));
        heft_decoding_part *p = &d->part[k];
        *p = (heft_decoding_part){ .tensor = q->tensor,
                                   .part = part,
                                   .dtype = t->dtype,
                                   .rank = t->rank,
                                   .bytes = row->length,
                                   .elements = 1,
                                   .is_compressed = row->encoding != HEFT_RAW,
                                   .dims = heft_ix_dims(x, q->tensor) };
        for (uint32_t i = 0; i < t->rank; i++) /* their bytes are in the file: no overflow */
            p->elements *= p->dims[i];
    }
    return HEFT_OK;
}

/* Every column has a number by which its inputs were divided. */
static heft_status check_columns(const heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *p = heft_decoding_part_of(d, HEFT_ROLE_PRE_SCALE);
    bool is_good = p && p->elements == d->columns && heft_is_scale(p->dtype) && !d->is_transposed;
    return !p || is_good ? HEFT_OK
                         : heft_decoding_refuse(d, HEFT_ROLE_PRE_SCALE,
                                                "does not have a number for each column", err);
}

/* Return the name of the scale, or else of the first part. */
static heft_str scale_name(const heft_file *f, const heft_schemes *s, uint32_t i)
{
    uint32_t found = heft_schemes_part_at(s, i, 0).tensor, count = heft_schemes_at(s, i).part_count;
    for (uint32_t k = 0; k < count; k++) {
        heft_quantised_part p = heft_schemes_part_at(s, i, k);
        found = heft_str_is(heft_lit(p.role), "scale") ? p.tensor : found;
    }
    return found == HEFT_NONE ? heft_schemes_at(s, i).name : heft_ix_name(&f->x, found);
}

/* The name of another part helps where the shapes fit no scheme. */
static heft_status refuse_scheme(const heft_quantised *q, const heft_file *f, const heft_schemes *s,
                                 uint32_t i, heft_error *err)
{
    const heft_scheme *scheme = heft_schemes_scheme(s, i);
    const char *advice = scheme && scheme->advice ? scheme->advice
                                                  : "start from the model before it was quantised";
    return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                            "tensor %q, with the part %q, is quantised in a way (%q) that is "
                            "recognised and not decoded: %s",
                            q->name, scale_name(f, s, i), q->scheme, advice);
}

static void begin(heft_decoding *d, const heft_file *f, heft_str name)
{
    *d = (heft_decoding){ .f = f, .name = name, .dtype = HEFT_BF16, .stack = 1, .factor = 1 };
    for (int k = 0; k < HEFT_ROLES; k++)
        d->part[k].tensor = HEFT_NONE;
}

heft_status heft_decoding_open(heft_decoding *d, const heft_file *f, const heft_schemes *s,
                               uint32_t i, heft_error *err)
{
    heft_quantised q = heft_schemes_at(s, i);
    const heft_scheme *scheme = heft_schemes_scheme(s, i);
    begin(d, f, q.name);
    d->scheme = scheme;
    d->decoder = heft_scheme_decoder_of(scheme);
    d->settings = heft_schemes_settings(s, i);
    d->variant = heft_schemes_variant(s, i);
    d->bits = q.bits;
    d->block[0] = q.block[0];
    d->block[1] = q.block[1];
    if (!d->decoder)
        return refuse_scheme(&q, f, s, i, err);
    for (uint32_t k = 0; k < q.part_count; k++) {
        heft_quantised_part part = heft_schemes_part_at(s, i, k);
        HEFT_TRY(find_part(d, &part, err));
    }
    if (d->part[HEFT_ROLE_WEIGHT].tensor == HEFT_NONE)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "quantised tensor %q has no weight",
                                q.name);
    HEFT_TRY(heft_decoding_check_settings(d, heft_schemes_modules(s), err));
    HEFT_TRY(d->decoder->prepare(d, err));
    return check_columns(d, err);
}

heft_status heft_decoding_open_blocks(heft_decoding *d, const heft_file *f, uint32_t tensor,
                                      heft_error *err)
{
    const heft_quantised_part weight = { tensor, heft_role_name(HEFT_ROLE_WEIGHT) };
    begin(d, f, heft_ix_name(&f->x, tensor));
    d->decoder = &heft_decoder_of_blocks;
    d->dtype = HEFT_F32;
    HEFT_TRY(find_part(d, &weight, err));
    return heft_decoding_take_shape(d, 1, err);
}
