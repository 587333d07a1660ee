/* zt1_fast_path.c - a dense, raw tensor as every writer of 1.0 to 1.2 spells it: nearly all that
 * there are.  Anything else is left to the reader that takes keys in any order. */
#include "format/ztensor/ztensor.h"

#include "model/records.h"

enum { LEVELS = 3, MOST_RANK = 8, ITEMS = 2 /* of the map of tensors: a name and a tensor */ };

typedef struct usual {
    heft_str name, digest;
    const uint8_t *component;
    heft_range where;
    heft_dtype dtype;
    uint8_t shape[8 * MOST_RANK];
    uint32_t rank;
} usual;

/* In the spelling of its own generation; a logical type has a key of its own behind it. */
static bool look_at_type(heft_cbor_fast *l, usual *u, bool is_10)
{
    enum { LONGEST = 8 }; /* of either spelling */
    heft_str s;
    if (!heft_cbor_fast_text(l, "dtype", 5) || !heft_cbor_fast_string(l, &s) || !s.len ||
        s.len > LONGEST || !s.ptr[s.len - 1])
        return false;
    /* eight bytes at once: after such a look there are as many behind the text */
    uint64_t key = heft_le64((const uint8_t *)s.ptr) & UINT64_MAX >> (64 - 8 * s.len);
    for (size_t i = 0; i < heft_zt_type_count; i++) {
        const heft_zt_type *t = &heft_zt_types[i];
        if (heft_le64((const uint8_t *)(is_10 ? t->long_name : t->name)) == key) {
            u->dtype = t->dtype;
            return true;
        }
    }
    return false;
}

static bool look_at_component(heft_cbor_fast *l, usual *u, bool is_10)
{
    uint32_t plain = is_10 ? 2 : 3, pairs;
    if (!heft_cbor_fast_head(l, HEFT_CBOR_HEAD_MAP, plain + 1, &pairs) || pairs < plain ||
        !(is_10 || look_at_type(l, u, is_10)) || !heft_cbor_fast_text(l, "offset", 6) ||
        !heft_cbor_fast_u64(l, &u->where.offset) || !heft_cbor_fast_text(l, "length", 6) ||
        !heft_cbor_fast_u64(l, &u->where.length))
        return false;
    return pairs == plain ||
           (heft_cbor_fast_text(l, "digest", 6) && heft_cbor_fast_string(l, &u->digest));
}

/* The one that a dense tensor has. */
static bool look_at_components(heft_cbor_fast *l, usual *u, bool is_10)
{
    uint32_t parts;
    if (!heft_cbor_fast_text(l, "components", 10) ||
        !heft_cbor_fast_head(l, HEFT_CBOR_HEAD_MAP, 1, &parts) || !parts ||
        !heft_cbor_fast_text(l, "data", 4))
        return false;
    u->component = l->p;
    u->digest = (heft_str){ NULL, 0 };
    return look_at_component(l, u, is_10);
}

static bool look_at_tensor(heft_cbor_fast *l, usual *u, const heft_cbor *c, bool is_10)
{
    uint32_t fields = is_10 ? 4 : 3, found;
    if (!heft_cbor_fast_at(l, c, ITEMS, LEVELS) || !heft_cbor_fast_string(l, &u->name) ||
        !heft_cbor_fast_head(l, HEFT_CBOR_HEAD_MAP, fields, &found) || found != fields ||
        !(!is_10 || look_at_type(l, u, is_10)) || !heft_cbor_fast_text(l, "shape", 5) ||
        !heft_cbor_fast_u64s(l, u->shape, MOST_RANK, &u->rank) ||
        !heft_cbor_fast_text(l, "format", 6) || !heft_cbor_fast_text(l, "dense", 5))
        return false;
    return look_at_components(l, u, is_10);
}

/* Where data can lie; heft_zt_add_part() says what is wrong when they do not. */
static inline bool lies_well(const heft_index *x, heft_range r)
{
    return r.offset >= x->data_start && heft_range_in(r, x->data_end);
}

heft_status heft_zt1_read_canonical(heft_cbor *c, heft_index *x, bool is_10, bool *read)
{
    usual u;
    heft_cbor_fast l;
    *read = look_at_tensor(&l, &u, c, is_10);
    if (!*read)
        return HEFT_OK;
    heft_cbor_accept(c, &l, ITEMS);
    if (!u.digest.ptr && lies_well(x, u.where)) {
        heft_ix_record r = { .name = u.name,
                             .shape = u.shape,
                             .at = heft_cbor_offset(c, u.component),
                             .offset = u.where.offset,
                             .length = u.where.length,
                             .rank = u.rank,
                             .dtype = u.dtype };
        return heft_ix_add(x, &r);
    }
    uint64_t *dims;
    uint32_t id;
    heft_status st = heft_ix_tensor(x, u.name, u.dtype, u.rank, &dims, &id);
    if (st)
        return st;
    for (uint32_t i = 0; i < u.rank; i++)
        dims[i] = heft_le64(u.shape + 8 * i);
    heft_zt_part part = { .at = heft_cbor_offset(c, u.component),
                          .role = { "data", 4 },
                          .digest = u.digest,
                          .where = u.where,
                          .decoded = HEFT_UNKNOWN_LENGTH,
                          .dtype = u.dtype };
    return heft_zt_add_part(x, id, &part);
}
