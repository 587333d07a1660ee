/* block_rows.c - the functions of block_rows.h, which check what a caller passes. */
#include <heft/block_rows.h>

#include "base/error.h"
#include "model/block_encode.h"
#include "model/blocks.h"
#include "model/dtype.h"
#include "model/float.h"

/* Check that a row of `columns` fills whole blocks, which take at most `capacity` bytes. */
static heft_status check_row(heft_dtype t, size_t columns, size_t capacity, heft_error *err)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    uint64_t bytes = 0;
    if (columns % d->block_elems)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "%U columns do not fill blocks of %s, which have %U",
                                (uint64_t)columns, d->name, (uint64_t)d->block_elems);
    if (!heft_dtype_bytes(&bytes, t, columns) || bytes > capacity)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "%U columns of %s take %U bytes, and there are %U",
                                (uint64_t)columns, d->name, bytes, (uint64_t)capacity);
    return HEFT_OK;
}

static heft_status check_importance(const float *importance, size_t columns, heft_error *err)
{
    for (size_t i = 0; importance && i < columns; i++)
        if (!(importance[i] >= 0 && importance[i] - importance[i] == 0))
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "the importance of column %U is negative or not finite",
                                    (uint64_t)i);
    return HEFT_OK;
}

heft_status heft_block_encode(void *out, size_t capacity, heft_dtype to, const float *row,
                              size_t columns, const float *importance, heft_error *err)
{
    const char *refusal = heft_block_encode_refusal(to);
    if (refusal)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "cannot encode to %s, which %s",
                                heft_dtype_name(to), refusal);
    HEFT_TRY(check_row(to, columns, capacity, err));
    HEFT_TRY(check_importance(importance, columns, err));
    heft_row_encode(out, to, row, columns, importance);
    return HEFT_OK;
}

heft_status heft_block_decode(float *out, heft_dtype from, const void *blocks, size_t bytes,
                              size_t columns, heft_error *err)
{
    if (!heft_block_is_known(from))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "cannot decode %s, which is not a type of blocks",
                                heft_dtype_name(from));
    HEFT_TRY(check_row(from, columns, bytes, err));
    heft_dtype_cast(out, HEFT_F32, blocks, from, columns);
    heft_f32_from_little(out, columns);
    return HEFT_OK;
}
