/* v1_look.c - a dense, raw tensor as every writer of 1.0 to 1.2 spells it: nearly all that
 * there are.  Anything else is left to the reader that takes keys in any order. */
#include "format/ztensor/ztensor.h"

enum { MAP = 0xA0, ARRAY = 0x80, LEVELS = 3, MOST_RANK = 8 };

typedef struct usual {
    heft_dtype dtype;
    uint32_t rank;
    uint64_t dims[MOST_RANK];
    heft_zt_part part;
} usual;

static bool spells(heft_str s, const char *name)
{
    size_t i = 0;
    while (name && i < s.len && name[i] == s.ptr[i])
        i++;
    return name && i == s.len && !name[i];
}

/* In the spelling of its own generation; a logical type has a key of its own behind it. */
static heft_dtype look_type(heft_cbor_look *l, bool is_10)
{
    heft_str s = heft_cbor_look_string(l);
    for (size_t i = 0; l->fits && i < heft_zt_type_count; i++)
        if (spells(s, is_10 ? heft_zt_types[i].long_name : heft_zt_types[i].name))
            return heft_zt_types[i].dtype;
    l->fits = false;
    return HEFT_UNTYPED;
}

static void look_shape(heft_cbor_look *l, usual *u)
{
    heft_cbor_look_text(l, "shape", 5);
    u->rank = heft_cbor_look_head(l) ^ ARRAY;
    l->fits = l->fits && u->rank <= MOST_RANK;
    for (uint32_t i = 0; l->fits && i < u->rank; i++)
        u->dims[i] = heft_cbor_look_u64(l);
}

static void look_component(heft_cbor_look *l, usual *u, bool is_10)
{
    uint32_t plain = is_10 ? 2 : 3, pairs = heft_cbor_look_head(l) ^ MAP;
    l->fits = l->fits && (pairs == plain || pairs == plain + 1);
    if (!is_10) {
        heft_cbor_look_text(l, "dtype", 5);
        u->dtype = look_type(l, is_10);
    }
    heft_cbor_look_text(l, "offset", 6);
    u->part.where.offset = heft_cbor_look_u64(l);
    heft_cbor_look_text(l, "length", 6);
    u->part.where.length = heft_cbor_look_u64(l);
    if (pairs == plain)
        return;
    heft_cbor_look_text(l, "digest", 6);
    u->part.digest = heft_cbor_look_string(l);
}

static bool look_at_tensor(heft_cbor_look *l, usual *u, const heft_cbor *c, bool is_10)
{
    *l = heft_cbor_look_at(c, LEVELS);
    l->fits = heft_cbor_look_head(l) == (MAP | (is_10 ? 4 : 3)) && l->fits;
    if (is_10) {
        heft_cbor_look_text(l, "dtype", 5);
        u->dtype = look_type(l, is_10);
    }
    look_shape(l, u);
    heft_cbor_look_text(l, "format", 6);
    heft_cbor_look_text(l, "dense", 5);
    heft_cbor_look_text(l, "components", 10);
    l->fits = heft_cbor_look_head(l) == (MAP | 1) && l->fits;
    heft_cbor_look_text(l, "data", 4);
    u->part.at = heft_cbor_offset(c, l->p);
    look_component(l, u, is_10);
    return l->fits;
}

heft_status heft_zt1_read_usual(heft_cbor *c, heft_index *x, bool is_10, heft_str name, bool *read)
{
    usual u = { .part = { .role = { "data", 4 }, .decoded = HEFT_NOWHERE } };
    heft_cbor_look l;
    uint64_t *dims;
    uint32_t id;
    *read = look_at_tensor(&l, &u, c, is_10);
    if (!*read)
        return HEFT_OK;
    heft_cbor_accept(c, &l);
    u.part.dtype = u.dtype;
    heft_status st = heft_ix_tensor(x, name, u.dtype, u.rank, &dims, &id);
    if (st)
        return st;
    for (uint32_t i = 0; i < u.rank; i++)
        dims[i] = u.dims[i];
    return heft_zt_add_part(x, id, &u.part);
}
