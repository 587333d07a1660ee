/* records.h - a tensor, its shape and its one part "data", dense and raw, added at once: what most records of
 * most files are. */
#ifndef HEFT_RECORDS_H
#define HEFT_RECORDS_H
#include "base/checked_math.h"
#include "base/cursor.h"
#include "base/path_risk.h"
#include "model/dtype.h"
#include "model/names.h"

typedef struct heft_ix_record { /* as a file has it */
    heft_str name;
    const uint8_t *shape;        /* rank numbers of eight bytes, little-endian */
    uint64_t at, offset, length; /* as heft_ix_dense() takes them; length becomes the part's */
    uint64_t elements;           /* set: the product of the shape */
    uint32_t rank, id;           /* id is set */
    heft_dtype dtype;
    uint8_t flags; /* of the row */
} heft_ix_record;

/* What heft_ix_add() does when there is no room yet, or something is wrong. */
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

/* The shape goes behind the others, what it comes to into r; false: what is wrong is for others to say. */
static inline bool heft_ix_take_shape(const heft_index *x, heft_ix_record *r)
{
    uint64_t *to = (uint64_t *)x->dims.ptr + x->dims.len, n = 1, bytes; /* NULL: of scalars only */
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

/* As heft_ix_tensor() and heft_ix_dense() would add them. */
static inline heft_status heft_ix_add(heft_index *x, heft_ix_record *r)
{
    uint64_t length = r->length;
    if (heft_unlikely(!heft_ix_has_capacity(x, r) || !heft_ix_take_shape(x, r))) {
        heft_ix_record slow = *r; /* so that the record itself can stay in registers */
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
    x->most_rank = r->rank > x->most_rank ? r->rank : x->most_rank;
    x->dims.len += r->rank;
    heft_ix_parsed_upto(x, r->name.ptr);
    return HEFT_OK;
}

/* As heft_ix_base_id() would set it. */
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
