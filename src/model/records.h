/* records.h - append a dense tensor with one raw part "data" in one step: the fast path for most
 * records of most files. */
#ifndef HEFT_RECORDS_H
#define HEFT_RECORDS_H
#include "base/checked_math.h"
#include "base/cursor.h"
#include "base/path_risk.h"
#include "model/dtype.h"
#include "model/names.h"

/* A tensor record of a file. */
typedef struct heft_ix_record {
    heft_str name;
    const uint8_t *shape;        /* `rank` little-endian numbers of 8 bytes */
    uint64_t at, offset, length; /* see heft_ix_dense(); length is set to that of the part */
    uint64_t elements;           /* set to the product of the shape */
    uint32_t rank, id;           /* id is set to the number of the tensor */
    heft_dtype dtype;
    uint8_t flags; /* heft_ix_tensor_row.flags */
} heft_ix_record;

/* Append the record without the fast path: grow the columns, or report the error. */
heft_status heft_ix_add_slowly(heft_index *x, heft_ix_record *r);

static inline bool heft_ix_data_role_is_cached(const heft_index *x)
{
    const heft_str *roles = x->roles.ptr;
    return x->roles.len && (roles[x->last_role].ptr == heft_ix_data.ptr ||
                            heft_str_eq(roles[x->last_role], heft_ix_data));
}

static inline bool heft_ix_has_capacity(const heft_index *x, const heft_ix_record *r)
{
    return x->tensors.len < x->tensors.cap && x->tensors.len < x->limits.tensors &&
           x->hashes.len < x->hashes.cap && x->parts.len < x->parts.cap &&
           r->rank <= x->dims.cap - x->dims.len && r->rank <= UINT16_MAX &&
           r->name.len <= UINT32_MAX && heft_ix_data_role_is_cached(x);
}

/* Copy the shape after the used dimensions and set r->elements and r->length.  On false the slow
 * path reports the error. */
static inline bool heft_ix_take_shape(const heft_index *x, heft_ix_record *r)
{
    uint64_t *to = (uint64_t *)x->dims.ptr + x->dims.len, n = 1,
             bytes; /* dims.ptr is NULL while every tensor is a scalar */
    uint32_t size = heft_dtype_size(r->dtype);
    bool fits = size;
    for (uint32_t i = 0; i < r->rank; i++) {
        uint64_t dim = to[i] = heft_le64(r->shape + 8 * i);
        fits = heft_mul(&n, n, dim) && fits;
    }
    fits = heft_mul(&bytes, n, size) && fits;
    r->elements = n;
    if (!fits || (r->length != HEFT_UNKNOWN_LENGTH && r->length != bytes))
        return false;
    r->length = bytes;
    return !x->file_bytes || heft_range_in((heft_range){ r->offset, bytes }, x->file_bytes);
}

/* Append the tensor and the part as heft_ix_tensor() and heft_ix_dense() would. */
static inline heft_status heft_ix_add(heft_index *x, heft_ix_record *r)
{
    uint64_t length = r->length;
    if (heft_unlikely(!heft_ix_has_capacity(x, r) || !heft_ix_take_shape(x, r))) {
        heft_ix_record slow = *r; /* a copy, so that the compiler can keep *r in registers */
        slow.length = length;
        heft_status st = heft_ix_add_slowly(x, &slow);
        *r = slow;
        return st;
    }
    uint32_t id = r->id = x->tensors.len++;
    *heft_ix_row(x, id) = (heft_ix_tensor_row){
        .name = r->name.ptr,
        .name_len = (uint32_t)r->name.len,
        .dims = x->dims.len,
        .first_part = x->parts.len,
        .rank = (uint16_t)r->rank,
        .part_count = 1,
        .dtype = r->dtype,
        .layout = HEFT_DENSE,
        .flags = r->flags,
    };
    ((heft_ix_part_row *)x->parts.ptr)[x->parts.len++] =
        (heft_ix_part_row){ r->offset, r->length, r->length, x->last_role, r->dtype, HEFT_RAW, 0 };
    ((uint32_t *)x->hashes.ptr)[x->hashes.len++] = heft_names_hash(&x->key, r->name);
    x->odd_names = x->odd_names || heft_str_may_be_path(r->name);
    x->offset_bits |= r->offset;
    x->max_rank = r->rank > x->max_rank ? r->rank : x->max_rank;
    x->dims.len += r->rank;
    heft_ix_parsed_upto(x, r->name.ptr);
    return HEFT_OK;
}

/* Set the base id as heft_ix_base_id() would; fast for tensors in ascending order. */
static inline heft_status heft_ix_add_base_id(heft_index *x, uint32_t tensor, const uint8_t id[16])
{
    heft_vec *ids = &x->base_ids;
    if (heft_unlikely(ids->len != tensor || ids->len == ids->cap))
        return heft_ix_base_id(x, tensor, id);
    memcpy((uint8_t *)ids->ptr + (size_t)ids->len++ * 16, id, 16);
    heft_ix_row(x, tensor)->flags |= HEFT_T_BASE_ID;
    return HEFT_OK;
}

#endif
