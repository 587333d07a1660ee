/* modelopt_int4.c - integers of 4 bits with a sign, as ModelOpt stores the weights of its AWQ: a
 * byte has a column of two rows, the even row in the low half.
 *
 *   weight [rows / 2, columns], weight_scale [rows, columns / group]: q * scale
 *
 * pre_quant_scale has a number for each column, by which AWQ has divided the inputs. */
#include "base/checked_math.h"
#include "scheme/decoding.h"

static heft_status prepare(heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT], *s = &d->part[HEFT_ROLE_SCALE];
    uint64_t columns = heft_decoding_dim(w, 0), groups = heft_decoding_dim(s, 0);
    if (heft_decoding_part_of(d, HEFT_ROLE_GLOBAL_SCALE))
        return heft_decoding_refuse(d, HEFT_ROLE_GLOBAL_SCALE,
                                    "belongs to ModelOpt's W4A8, which is not decoded", err);
    HEFT_TRY(heft_decoding_set_shape(d, heft_decoding_dim(s, 1), columns, err));
    if (!groups || heft_div(columns, groups) * groups != columns)
        return heft_decoding_refuse(d, HEFT_ROLE_SCALE, "has groups that do not divide the columns",
                                    err);
    d->block[0] = 1;
    d->block[1] = heft_div(columns, groups);
    heft_decoding_set_type(d, HEFT_ROLE_SCALE);
    return heft_decoding_set_grid(d, HEFT_ROLE_SCALE, err);
}

static heft_status decode(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    float scale[HEFT_RUN];
    const uint8_t *p = heft_decoder_bytes(r, HEFT_ROLE_WEIGHT, row / 2 * r->d->columns + column,
                                          count);
    uint32_t shift = row % 2 * 4;
    for (size_t i = 0; p && i < count; i++) {
        int32_t q = p[i] >> shift & 15;
        out[i] = (float)(q < 8 ? q : q - 16);
    }
    if (p && heft_decoder_scales(r, HEFT_ROLE_SCALE, row, column, count, scale))
        heft_decoder_multiply(r->d, column, count, scale, out);
    return r->st;
}

const heft_scheme_decoder heft_decoder_of_modelopt = { prepare, decode, NULL };
