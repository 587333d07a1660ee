/* zt1_fast_path.c - parses a dense, raw tensor in the spelling of all known writers of 1.0 to
 * 1.2. Anything else is left to the reader that accepts keys in any order. */
#include "format/ztensor/ztensor.h"

#include "model/records.h"

enum {
    LEVELS = 3,
    MAX_RANK = 8,
    ITEMS = 2 /* items per tensor in the map of tensors: name and tensor */
};

typedef struct canonical_tensor {
    heft_str name, digest;
    const uint8_t *component;
    heft_range range;
    heft_dtype dtype;
    uint8_t shape[8 * MAX_RANK];
    uint32_t rank;
} canonical_tensor;

/* Match only the generation's own spelling. A logical type would be followed by another key. */
static bool match_type(heft_cbor_fast *cursor, canonical_tensor *tensor, bool is_10)
{
    enum { LONGEST = 8 }; /* longest name in either spelling */
    heft_str s;
    if (!heft_cbor_fast_text(cursor, "dtype", 5) || !heft_cbor_fast_string(cursor, &s) || !s.len ||
        s.len > LONGEST || !s.ptr[s.len - 1])
        return false;
    /* Load eight bytes at once; heft_cbor_fast_at() guarantees that they are readable. */
    uint64_t key = heft_le64((const uint8_t *)s.ptr) & UINT64_MAX >> (64 - 8 * s.len);
    for (size_t i = 0; i < heft_zt_type_count; i++) {
        const heft_zt_type *t = &heft_zt_types[i];
        if (heft_le64((const uint8_t *)(is_10 ? t->long_name : t->name)) == key) {
            tensor->dtype = t->dtype;
            return true;
        }
    }
    return false;
}

static bool match_component(heft_cbor_fast *cursor, canonical_tensor *tensor, bool is_10)
{
    uint32_t required = is_10 ? 2 : 3, pairs;
    if (!heft_cbor_fast_head(cursor, HEFT_CBOR_HEAD_MAP, required + 1, &pairs) ||
        pairs < required || !(is_10 || match_type(cursor, tensor, is_10)) ||
        !heft_cbor_fast_text(cursor, "offset", 6) ||
        !heft_cbor_fast_u64(cursor, &tensor->range.offset) ||
        !heft_cbor_fast_text(cursor, "length", 6) ||
        !heft_cbor_fast_u64(cursor, &tensor->range.length))
        return false;
    return pairs == required || (heft_cbor_fast_text(cursor, "digest", 6) &&
                                 heft_cbor_fast_string(cursor, &tensor->digest));
}

/* Match the map of components of a dense tensor, which has one. */
static bool match_components(heft_cbor_fast *cursor, canonical_tensor *tensor, bool is_10)
{
    uint32_t parts;
    if (!heft_cbor_fast_text(cursor, "components", 10) ||
        !heft_cbor_fast_head(cursor, HEFT_CBOR_HEAD_MAP, 1, &parts) || !parts ||
        !heft_cbor_fast_text(cursor, "data", 4))
        return false;
    tensor->component = cursor->p;
    tensor->digest = (heft_str){ NULL, 0 };
    return match_component(cursor, tensor, is_10);
}

static bool match_tensor(heft_cbor_fast *cursor, canonical_tensor *tensor, const heft_cbor *c,
                         bool is_10)
{
    uint32_t fields = is_10 ? 4 : 3, found;
    if (!heft_cbor_fast_at(cursor, c, ITEMS, LEVELS) ||
        !heft_cbor_fast_string(cursor, &tensor->name) ||
        !heft_cbor_fast_head(cursor, HEFT_CBOR_HEAD_MAP, fields, &found) || found != fields ||
        !(!is_10 || match_type(cursor, tensor, is_10)) ||
        !heft_cbor_fast_text(cursor, "shape", 5) ||
        !heft_cbor_fast_u64s(cursor, tensor->shape, MAX_RANK, &tensor->rank) ||
        !heft_cbor_fast_text(cursor, "format", 6) || !heft_cbor_fast_text(cursor, "dense", 5))
        return false;
    return match_components(cursor, tensor, is_10);
}

/* Return true if the range is inside the data area; otherwise heft_zt_add_part() reports the
 * error. */
static inline bool is_in_data_area(const heft_index *x, heft_range r)
{
    return r.offset >= x->data_start && heft_range_in(r, x->data_end);
}

heft_status heft_zt1_read_canonical(heft_cbor *c, heft_index *x, bool is_10, bool *read)
{
    canonical_tensor tensor;
    heft_cbor_fast cursor;
    *read = match_tensor(&cursor, &tensor, c, is_10);
    if (!*read)
        return HEFT_OK;
    heft_cbor_accept(c, &cursor, ITEMS);
    if (!tensor.digest.ptr && is_in_data_area(x, tensor.range)) {
        heft_ix_record r = { .name = tensor.name,
                             .shape = tensor.shape,
                             .at = heft_cbor_offset(c, tensor.component),
                             .offset = tensor.range.offset,
                             .length = tensor.range.length,
                             .rank = tensor.rank,
                             .dtype = tensor.dtype };
        return heft_ix_add(x, &r);
    }
    uint64_t *dims;
    uint32_t id;
    HEFT_TRY(heft_ix_tensor(x, tensor.name, tensor.dtype, tensor.rank, &dims, &id));
    for (uint32_t i = 0; i < tensor.rank; i++)
        dims[i] = heft_le64(tensor.shape + 8 * i);
    heft_zt_part part = { .at = heft_cbor_offset(c, tensor.component),
                          .role = { "data", 4 },
                          .digest = tensor.digest,
                          .range = tensor.range,
                          .decoded = HEFT_UNKNOWN_LENGTH,
                          .dtype = tensor.dtype };
    return heft_zt_add_part(x, id, &part);
}
