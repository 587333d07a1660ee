/* row_encoder.c - rows are cast to f32, checked and encoded. */
#include "core/write/convert/copy.h"

#include "base/checked_math.h"
#include "model/block_encode.h"
#include "model/encode_rounding.h"

static const float MOST_F16 = 65504;

const char heft_no_encoders[] = "";

bool heft_rows_can_encode(heft_dtype to, heft_dtype from)
{
    return heft_block_can_encode(to) && from != to && heft_dtype_can_cast(HEFT_F32, from);
}

/* Cast a row to f32 in the byte order of the machine. */
static void load_row(float *values, const uint8_t *src, heft_dtype from, size_t columns)
{
    if (from == HEFT_F32)
        memcpy(values, src, columns * sizeof *values);
    else
        heft_cast_counted(values, HEFT_F32, src, from, columns, NULL);
    heft_f32_from_little(values, columns);
}

/* Return the bits of the greatest magnitude.  Their order is that of the numbers; NaN is above
 * infinity. */
static uint32_t greatest_bits(const float *values, size_t columns)
{
    uint32_t most = 0;
    for (size_t i = 0; i < columns; i++) {
        uint32_t bits = heft_f32_bits(values[i]) & INT32_MAX;
        most = bits > most ? bits : most;
    }
    return most;
}

/* Return the magnitude beyond which no block of the type has a scale for a number: blocks of
 * 65504 * 32 * 128 in q6_k are the widest of those with scales in f16. */
static float largest_of(heft_dtype to)
{
    if (to == HEFT_MXFP4 || to == HEFT_Q8_K)
        return 0x1.fffffep+127F;
    return to == HEFT_NVFP4 ? 464 * 6.0F : 0x1p28F;
}

static heft_status refuse_number(const heft_copy_context *c, uint32_t part, uint64_t row,
                                 uint64_t column, const char *what, heft_error *err)
{
    const heft_index *x = &c->p->x;
    heft_error_plain(err, HEFT_E_LOSSY,
                     "tensor %q: row %U, column %U is %s, and %s blocks cannot represent it: the "
                     "whole block would lose its values",
                     heft_ix_name(x, heft_ix_owner(x, part)), row, column, what,
                     heft_dtype_name(heft_ix_part_row_at(x, part)->dtype));
    return heft_error_rule(err, HEFT_E_LOSSY, "heft/not-finite");
}

static const char too_large[] = "too large";

/* Refuse the first number of a row that no block can represent. */
static heft_status refuse_row(const heft_copy_context *c, uint32_t part, const float *values,
                              uint64_t row, heft_error *err)
{
    float most = largest_of(heft_ix_part_row_at(&c->p->x, part)->dtype);
    size_t at = 0;
    while (heft_magnitude(values[at]) <= most)
        at++;
    const char *what = values[at] != values[at]       ? "NaN"
                       : values[at] - values[at] != 0 ? "infinite"
                                                      : too_large;
    return refuse_number(c, part, row, at, what, err);
}

/* Refuse a block whose scale has become infinite.  `values` gets the decoded row. */
static heft_status check_scales(const heft_copy_context *c, uint32_t part, const uint8_t *blocks,
                                float *values, uint64_t row, heft_error *err)
{
    size_t columns = (size_t)c->origins[part].row;
    heft_dtype_cast(values, HEFT_F32, blocks, heft_ix_part_row_at(&c->p->x, part)->dtype, columns);
    heft_f32_from_little(values, columns);
    for (size_t i = 0; i < columns; i++)
        if (values[i] - values[i] != 0)
            return refuse_number(c, part, row, i, too_large, err);
    return HEFT_OK;
}

/* Compare a row with what its blocks decode to, while both are in cache. */
static void measure_row(heft_pair_sums *sums, const float *values, const uint8_t *blocks,
                        heft_dtype to, size_t columns)
{
    float decoded[HEFT_QUALITY_RUN]; /* whole blocks of any type */
    const heft_dtype_info *d = heft_dtype_get(to);
    for (size_t at = 0, n; at < columns; at += n) {
        n = columns - at < HEFT_QUALITY_RUN ? columns - at : HEFT_QUALITY_RUN;
        (void)heft_dtype_cast(decoded, HEFT_F32, blocks + at / d->block_elems * d->block_bytes, to,
                              n);
        heft_f32_from_little(decoded, n);
        heft_pairs_add(sums, values + at, decoded, n);
    }
}

heft_status heft_rows_encode(uint8_t *dst, const heft_copy_context *c, uint32_t part,
                             const uint8_t *src, uint64_t first, uint64_t count, float *values,
                             heft_pair_sums *sums, heft_error *err)
{
    const heft_origin *o = &c->origins[part];
    heft_dtype to = heft_ix_part_row_at(&c->p->x, part)->dtype;
    uint64_t from_bytes, to_bytes;
    heft_dtype_bytes(&from_bytes, o->dtype, o->row);
    heft_dtype_bytes(&to_bytes, to, o->row);
    for (uint64_t i = first; i < first + count; i++, src += from_bytes, dst += to_bytes) {
        const float *importance = o->importance;
        if (importance)
            importance += heft_div(i, o->matrix_rows) * o->row;
        load_row(values, src, o->dtype, (size_t)o->row);
        uint32_t most = c->allow_nan ? 0 : greatest_bits(values, (size_t)o->row);
        if (most > heft_f32_bits(largest_of(to)))
            return refuse_row(c, part, values, i, err);
        heft_row_encode(dst, to, values, (size_t)o->row, importance);
        if (!HEFT_IS_LEAN && sums)
            measure_row(sums, values, dst, to, (size_t)o->row);
        if (most > heft_f32_bits(MOST_F16))
            HEFT_TRY(check_scales(c, part, dst, values, i, err));
    }
    return HEFT_OK;
}
