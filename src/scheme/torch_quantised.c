/* torch_quantised.c - PyTorch's quantised tensors: integers whose scale and zero point are
 * attributes, or tensors with a number for each channel, as the reader of PyTorch files states
 * them.  Two numbers of quint4x2 share a byte, the first in the low half. */
#include "base/checked_math.h"
#include "scheme/encoding.h"
#include "scheme/packed.h"

/* ---- decoding ---- */

/* Set *out to the attribute as a number. */
static bool find_number(double *out, const heft_decoding *d, const char *key)
{
    heft_value v;
    if (!heft_ix_find_attribute(&v, &d->f->x, d->part[HEFT_ROLE_WEIGHT].tensor, key))
        return false;
    *out = v.kind == HEFT_KIND_FLOAT ? v.as.f : (double)v.as.i;
    return v.kind == HEFT_KIND_FLOAT || v.kind == HEFT_KIND_INT;
}

/* The scales of channels belong to one axis. Rows and columns are chosen so that each row has one
 * scale: the dimensions up to the axis are rows. */
static heft_status set_channels(heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    const heft_decoding_part *s = heft_decoding_part_of(d, HEFT_ROLE_SCALE);
    const heft_decoding_part *z = heft_decoding_part_of(d, HEFT_ROLE_ZERO_POINT);
    double axis = -1;
    if (!find_number(&axis, d, "torch.axis") || axis < 0 || axis >= w->rank)
        return heft_decoding_refuse(d, HEFT_ROLE_SCALE, "belongs to an axis that is not there",
                                    err);
    d->rows = d->columns = 1;
    for (uint32_t i = 0; i < w->rank; i++)
        *(i <= (uint32_t)axis ? &d->rows : &d->columns) *= d->dims[i];
    d->group = d->dims[(uint32_t)axis]; /* channels: row r has channel r % group */
    if (s->elements != d->group)
        return heft_decoding_refuse(d, HEFT_ROLE_SCALE, "does not have a number for each channel",
                                    err);
    return z && z->elements == d->group
               ? HEFT_OK
               : heft_decoding_refuse(d, HEFT_ROLE_ZERO_POINT,
                                      "does not have a number for each channel", err);
}

static heft_status prepare(heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    double scale = 0, zero = 0;
    d->dtype = HEFT_F32;
    if (w->rank > HEFT_LOGICAL_RANK)
        return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT, "has too many dimensions", err);
    d->rank = w->rank;
    for (uint32_t i = 0; i < w->rank; i++)
        d->dims[i] = w->dims[i];
    if (heft_torch_has_pairs(&d->f->x, w->tensor) && w->rank)
        d->dims[w->rank - 1] *= 2;
    if (heft_decoding_part_of(d, HEFT_ROLE_SCALE))
        return set_channels(d, err);
    if (!find_number(&scale, d, "torch.scale") || !find_number(&zero, d, "torch.zero_point"))
        return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT,
                                    "has no attributes with scale and zero point", err);
    d->rows = d->columns = 1;
    for (uint32_t i = 0; i < d->rank; i++)
        d->columns *= d->dims[i];
    d->factor = (float)scale;
    d->offset = (float)zero;
    return HEFT_OK;
}

static bool read_numbers(heft_decoder *r, uint64_t first, size_t count, float *out)
{
    if (!heft_torch_has_pairs(&r->d->f->x, r->d->part[HEFT_ROLE_WEIGHT].tensor))
        return heft_decoder_floats(r, HEFT_ROLE_WEIGHT, first, count, out);
    const uint8_t *p = heft_decoder_bytes(r, HEFT_ROLE_WEIGHT, first / 2,
                                          (size_t)(first % 2 + count + 1) / 2);
    if (p)
        heft_bits_unpack(out, p, first % 2 * 4, 4, count);
    return p;
}

static heft_status decode(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    const heft_decoding *d = r->d;
    float scale = d->factor, zero = d->offset;
    uint64_t channel = d->group ? row - heft_div(row, d->group) * d->group : 0;
    if (heft_decoding_part_of(d, HEFT_ROLE_SCALE) &&
        (!heft_decoder_floats(r, HEFT_ROLE_SCALE, channel, 1, &scale) ||
         !heft_decoder_floats(r, HEFT_ROLE_ZERO_POINT, channel, 1, &zero)))
        return r->st;
    if (read_numbers(r, row * d->columns + column, count, out))
        for (size_t i = 0; i < count; i++)
            out[i] = (out[i] - zero) * scale;
    return r->st;
}

const heft_scheme_decoder heft_decoder_of_torch = { prepare, decode, NULL };

/* ---- integers ---- */

/* Return the zero point that makes numbers of the type integers with a sign; -1: none does. */
static float middle_of(const heft_decoding *d)
{
    enum { HALF_PAIR = 8, HALF_BYTE = 128 };
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    if (heft_torch_has_pairs(&d->f->x, w->tensor))
        return HALF_PAIR;
    return w->dtype == HEFT_I8 ? 0 : w->dtype == HEFT_U8 ? HALF_BYTE : -1;
}

/* Return whether all zero points of channels are that number. */
static bool are_zeros(const heft_decoding *d, double middle)
{
    enum { PIECE = 64 };
    const heft_decoding_part *z = &d->part[HEFT_ROLE_ZERO_POINT];
    uint32_t size = heft_dtype_size(z->dtype);
    heft_error err;
    for (uint64_t i = 0, n; i < z->elements; i += n) {
        uint8_t raw[PIECE * sizeof(uint64_t)];
        double zero[PIECE];
        n = z->elements - i < PIECE ? z->elements - i : PIECE;
        if (!size || size > sizeof(uint64_t) ||
            heft_part_read(raw, d->f, z->part, i * size, (size_t)n * size, &err) ||
            !heft_dtype_to_f64(zero, z->dtype, raw, 0, (size_t)n))
            return false;
        for (uint64_t k = 0; k < n; k++)
            if (zero[k] != middle)
                return false;
    }
    return true;
}

static const char *check(const heft_decoding *d, uint32_t *bits, uint64_t *run)
{
    float middle = middle_of(d);
    bool has_channels = heft_decoding_part_of(d, HEFT_ROLE_SCALE);
    *bits = heft_torch_has_pairs(&d->f->x, d->part[HEFT_ROLE_WEIGHT].tensor) ? 4 : 8;
    *run = has_channels ? d->columns : 0;
    if (middle < 0)
        return "its integers have neither 4 nor 8 bits";
    return (has_channels ? are_zeros(d, middle) : d->offset == middle)
               ? NULL
               : "it has a zero point, and Burn has none";
}

static bool integers(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    float middle = middle_of(r->d);
    if (!read_numbers(r, row * r->d->columns + column, count, out))
        return false;
    for (size_t i = 0; i < count; i++)
        out[i] -= middle;
    return true;
}

static bool scale_of(heft_decoder *r, uint64_t row, uint64_t column, float *out)
{
    const heft_decoding *d = r->d;
    (void)column;
    *out = d->factor;
    return !heft_decoding_part_of(d, HEFT_ROLE_SCALE) ||
           heft_decoder_floats(r, HEFT_ROLE_SCALE, row - heft_div(row, d->group) * d->group, 1,
                               out);
}

const heft_integer_form heft_integers_of_torch = { check, integers, scale_of };
