/* row_encoder.c - rows are cast to f32, checked, and encoded with the importance of their columns. */
#include "core/write/convert/row_encoder.h"

#include "base/checked_math.h"
#include "base/compiler.h"
#include "model/block_encode.h"

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
    for (size_t i = 0; i < columns; i++) {
        uint32_t bits = heft_le32((const uint8_t *)&values[i]);
        memcpy(&values[i], &bits, sizeof bits);
    }
}

/* Return the number of the first element that is NaN or infinite, or `columns`.  The sum is NaN if
 * one is: a product with 0 is 0 for all other numbers. */
static size_t find_special(const float *values, size_t columns)
{
    float sum = 0;
    size_t i = 0;
    for (; i < columns; i++)
        sum += values[i] * 0.0F;
    if (sum == 0)
        return columns;
    for (i = 0; i < columns && values[i] - values[i] == 0; i++)
        continue;
    return i;
}

static heft_status check_row(const heft_copy_context *c, uint32_t part, const float *values,
                             uint64_t row, heft_error *err)
{
    uint64_t columns = c->origins[part].row;
    size_t at = c->allow_nan ? (size_t)columns : find_special(values, (size_t)columns);
    if (at == columns)
        return HEFT_OK;
    const heft_index *x = &c->p->x;
    heft_error_plain(err, HEFT_E_LOSSY,
                     "tensor %q: row %U, column %U is %s, and %s blocks cannot represent it: the "
                     "whole block would lose its values",
                     heft_ix_name(x, heft_ix_owner(x, part)), row, (uint64_t)at,
                     values[at] != values[at] ? "NaN" : "infinite",
                     heft_dtype_name(heft_ix_part_row_at(x, part)->dtype));
    return heft_error_rule(err, HEFT_E_LOSSY, "heft/quantise");
}

heft_status heft_rows_encode(uint8_t *dst, const heft_copy_context *c, uint32_t part,
                             const uint8_t *src, uint64_t first, uint64_t count, float *values,
                             heft_error *err)
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
        HEFT_TRY(check_row(c, part, values, i, err));
        heft_row_encode(dst, to, values, (size_t)o->row, importance);
    }
    return HEFT_OK;
}
