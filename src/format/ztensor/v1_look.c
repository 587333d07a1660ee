/* v1_look.c - a dense, raw tensor as every writer of 1.0 to 1.2 spells it: nearly all that
 * there are.  Anything else is left to the reader that takes keys in any order. */
#include "format/ztensor/ztensor.h"

enum { LEVELS = 3, MOST_RANK = 8 };

typedef struct usual {
    heft_str name, digest;
    uint64_t at; /* of the component */
    heft_range where;
    heft_dtype dtype;
    uint32_t rank;
} usual;

/* In the spelling of its own generation; a logical type has a key of its own behind it. */
static bool look_at_type(heft_cbor_look *l, usual *u, bool is_10)
{
    enum { LONGEST = 8 }; /* of either spelling */
    heft_str s;
    char key[LONGEST] = { 0 };
    if (!heft_cbor_look_text(l, "dtype", 5) || !heft_cbor_look_string(l, &s) || !s.len ||
        s.len > LONGEST || !s.ptr[s.len - 1])
        return false;
    memcpy(key, s.ptr, s.len);
    for (size_t i = 0; i < heft_zt_type_count; i++)
        if (!memcmp(is_10 ? heft_zt_types[i].long_name : heft_zt_types[i].name, key, LONGEST)) {
            u->dtype = heft_zt_types[i].dtype;
            return true;
        }
    return false;
}

static bool look_at_component(heft_cbor_look *l, usual *u, bool is_10)
{
    uint32_t plain = is_10 ? 2 : 3, pairs;
    if (!heft_cbor_look_head(l, HEFT_CBOR_HEAD_MAP, plain + 1, &pairs) || pairs < plain ||
        !(is_10 || look_at_type(l, u, is_10)) || !heft_cbor_look_text(l, "offset", 6) ||
        !heft_cbor_look_u64(l, &u->where.offset) || !heft_cbor_look_text(l, "length", 6) ||
        !heft_cbor_look_u64(l, &u->where.length))
        return false;
    return pairs == plain ||
           (heft_cbor_look_text(l, "digest", 6) && heft_cbor_look_string(l, &u->digest));
}

static bool look_at_tensor(heft_cbor_look *l, usual *u, uint64_t *dims, const heft_cbor *c,
                           bool is_10)
{
    uint32_t fields = is_10 ? 4 : 3, found, parts;
    if (!heft_cbor_look_at(l, c, 2, LEVELS) || !heft_cbor_look_string(l, &u->name) ||
        !heft_cbor_look_head(l, HEFT_CBOR_HEAD_MAP, fields, &found) || found != fields ||
        !(!is_10 || look_at_type(l, u, is_10)) || !heft_cbor_look_text(l, "shape", 5) ||
        !heft_cbor_look_u64s(l, dims, MOST_RANK, &u->rank) ||
        !heft_cbor_look_text(l, "format", 6) || !heft_cbor_look_text(l, "dense", 5) ||
        !heft_cbor_look_text(l, "components", 10) ||
        !heft_cbor_look_head(l, HEFT_CBOR_HEAD_MAP, 1, &parts) || !parts ||
        !heft_cbor_look_text(l, "data", 4))
        return false;
    u->at = heft_cbor_offset(c, l->p);
    return look_at_component(l, u, is_10);
}

heft_status heft_zt1_read_usual(heft_cbor *c, heft_index *x, bool is_10, bool *read)
{
    uint64_t dims[MOST_RANK], *to;
    usual u = { .digest = { NULL, 0 } };
    heft_cbor_look l;
    uint32_t id;
    *read = look_at_tensor(&l, &u, dims, c, is_10);
    if (!*read)
        return HEFT_OK;
    heft_cbor_accept(c, &l, 2);
    heft_status st = heft_ix_tensor(x, u.name, u.dtype, u.rank, &to, &id);
    if (st)
        return st;
    for (uint32_t i = 0; i < u.rank; i++)
        to[i] = dims[i];
    heft_zt_part part = { .at = u.at,
                          .role = { "data", 4 },
                          .digest = u.digest,
                          .where = u.where,
                          .decoded = HEFT_NOWHERE,
                          .dtype = u.dtype };
    return heft_zt_add_part(x, id, &part);
}
