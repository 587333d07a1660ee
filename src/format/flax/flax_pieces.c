/* flax_pieces.c - arrays that Flax stores in pieces; flax.c shows the layout.
 *
 * The tensor is assembled from the pieces, ranges of its elements.  Tuples are maps with the keys
 * "0", "1", ..., which have to ascend, as in every file that Flax writes. */
#include "format/flax/flax.h"

#include "base/checked_math.h"
#include "model/boxes.h"

typedef struct pieces {
    heft_msgpack_tree *t;
    heft_str name, type; /* the type is that of the first piece */
    heft_dtype dtype;
    uint64_t *dims;
    uint32_t rank;
    uint64_t elements; /* of the pieces so far */
} pieces;

/* Read the head of a map with the items of a tuple, the value of a key. */
static heft_status enter_tuple(heft_msgpack_tree *t, const char *key, uint64_t *count)
{
    heft_msgpack_item it = heft_msgpack_next(&t->c);
    bool is_key = it.kind == HEFT_MSGPACK_TEXT && heft_str_is(heft_msgpack_text(&t->c, &it), key);
    if (!t->c.st && !is_key)
        return heft_cur_fail_at(&t->c, it.at, "an array in pieces: the key %q is missing",
                                heft_lit(key));
    HEFT_TRY(t->c.st);
    HEFT_TRY(heft_flax_expect(t, HEFT_MSGPACK_MAP, "the map of an array in pieces", &it));
    *count = it.u;
    return HEFT_OK;
}

static heft_status enter_item(heft_msgpack_tree *t, uint64_t i)
{
    char digits[20];
    heft_msgpack_item it = heft_msgpack_next(&t->c);
    heft_str number = { digits, heft_u64_text(digits, i) };
    bool is_number = it.kind == HEFT_MSGPACK_TEXT &&
                     heft_str_eq(heft_msgpack_text(&t->c, &it), number);
    if (!t->c.st && !is_number)
        heft_cur_fail_at(&t->c, it.at, "an array in pieces: the key %q is missing", number);
    return t->c.st;
}

static heft_status read_shape(pieces *p)
{
    heft_msgpack_tree *t = p->t;
    uint64_t rank;
    HEFT_TRY(enter_tuple(t, "shape", &rank));
    if (rank > UINT16_MAX)
        return heft_error_set(t->x->err, HEFT_E_LIMIT, heft_cur_pos(&t->c),
                              "tensor %q: %U dimensions are not supported", p->name, rank);
    p->rank = (uint32_t)rank;
    p->dims = heft_arena_alloc(&t->x->arena, ((size_t)rank + 1) * sizeof *p->dims, 8);
    if (!p->dims)
        return heft_msgpack_tree_no_memory(t);
    for (uint32_t i = 0; i < p->rank; i++) {
        HEFT_TRY(enter_item(t, i));
        p->dims[i] = heft_msgpack_u64(&t->c, "a dimension of an array in pieces");
        HEFT_TRY(t->c.st);
    }
    return HEFT_OK;
}

static heft_status begin_tensor(pieces *p)
{
    heft_index *x = p->t->x;
    uint64_t *dims;
    uint32_t id;
    p->dtype = heft_flax_type(p->type);
    if (!p->dtype)
        return HEFT_OK;
    HEFT_TRY(heft_ix_tensor(x, p->name, p->dtype, p->rank, &dims, &id));
    if (p->rank)
        memcpy(dims, p->dims, p->rank * sizeof *dims);
    return heft_ix_assembled_begin(x, id, true);
}

static heft_status add_piece(pieces *p, uint64_t i)
{
    heft_msgpack_tree *t = p->t;
    heft_msgpack_item it;
    heft_flax_array a;
    HEFT_TRY(enter_item(t, i));
    HEFT_TRY(heft_flax_expect(t, HEFT_MSGPACK_EXT, "a piece of an array", &it));
    HEFT_TRY(heft_flax_read_array(t, &it, &a));
    if (!i) {
        p->type = a.type;
        HEFT_TRY(begin_tensor(p));
    }
    if (it.i != HEFT_FLAX_ARRAY || a.rank != 1 || !heft_str_eq(a.type, p->type))
        return heft_cur_fail_at(&t->c, it.at,
                                "tensor %q: piece %U is not an array of one dimension of %q",
                                p->name, i, p->type);
    uint64_t from = p->elements, count = heft_msgpack_u64(&a.shape, "the length of a piece");
    heft_ix_box box = { .offset = a.data.offset, .length = a.data.length };
    HEFT_TRY(a.shape.st);
    if (p->dtype)
        HEFT_TRY(heft_ix_box_add(t->x, a.at, box, &from, &count));
    return heft_add(&p->elements, from, count)
               ? HEFT_OK
               : heft_cur_fail_at(&t->c, it.at, "tensor %q has more than 2^64 elements", p->name);
}

static heft_status leave_out(pieces *p, uint64_t at)
{
    heft_index *x = p->t->x;
    heft_ix_left_out(x, HEFT_LEFT_OUT, "flax/dtype",
                     (heft_range){ at, heft_cur_pos(&p->t->c) - at },
                     "tensor %q is left out: type %q is none that Heft knows", p->name, p->type);
    heft_ix_omit(x, HEFT_WARNING, "flax/dtype", p->name, "has a type that Heft does not know");
    return HEFT_OK;
}

heft_status heft_flax_add_pieces(heft_msgpack_tree *t, const heft_msgpack_item *map)
{
    enum { MEMBERS = 3 };
    pieces p = { .t = t };
    uint64_t count;
    if (map->u != MEMBERS)
        return heft_cur_fail_at(&t->c, map->at, "an array in pieces has %U members instead of 3",
                                map->u);
    HEFT_TRY(heft_msgpack_tree_name(t, map->at, "array", &p.name));
    for (int i = 0; i < 2; i++) { /* the key that marks the map, and its value */
        heft_msgpack_item it = heft_msgpack_next(&t->c);
        heft_msgpack_skip(&t->c, &it);
    }
    HEFT_TRY(t->c.st ? t->c.st : read_shape(&p));
    HEFT_TRY(enter_tuple(t, "chunks", &count));
    if (!count)
        return heft_cur_fail_at(&t->c, map->at, "tensor %q has no piece", p.name);
    for (uint64_t i = 0; i < count; i++)
        HEFT_TRY(add_piece(&p, i));
    return p.dtype ? heft_ix_assembled_end(t->x, map->at) : leave_out(&p, map->at);
}
