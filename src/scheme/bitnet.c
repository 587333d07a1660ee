/* bitnet.c - numbers -1, 0 and 1 in 2 bits: the four rows of a byte are a quarter of the rows
 * apart, and one scale divides the whole tensor. */
#include "scheme/decoding.h"

static heft_status prepare(heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    uint64_t rows = heft_decoding_dim(w, 1);
    if (rows > UINT64_MAX / 4)
        return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT, "is too large", err);
    heft_status st = heft_decoding_set_shape(d, 4 * rows, heft_decoding_dim(w, 0), err);
    if (!st)
        st = heft_decoding_scalar(d, HEFT_ROLE_SCALE, &d->factor, err);
    heft_decoding_set_type(d, HEFT_ROLE_SCALE);
    return st;
}

static heft_status decode(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    uint64_t bytes = r->d->rows / 4, quarter = row >= 2 * bytes ? 2 : 0;
    quarter += row - quarter * bytes >= bytes;
    const uint8_t *p = heft_decoder_bytes(r, HEFT_ROLE_WEIGHT,
                                          (row - quarter * bytes) * r->d->columns + column, count);
    for (size_t i = 0; p && i < count; i++)
        out[i] = ((float)(p[i] >> 2 * quarter & 3) - 1) / r->d->factor;
    return r->st;
}

const heft_scheme_decoder heft_decoder_of_bitnet = { prepare, decode, NULL };
