/* flax.c - reads trees of Flax (flax.serialization, flax_model.msgpack), in MessagePack.
 *
 *   tree      a map {key: tree, ...}; lists and tuples of Python are maps with the keys "0", "1"
 *   leaf      extension 1, an array, or 3, a number of NumPy: the MessagePack
 *                 [[dimension, ...], name of the type, bytes in C order, little-endian]
 *             extension 2, a complex number of Python: [real part, imaginary part]
 *             numbers, booleans, texts and nil of Python
 *   in pieces {"__msgpack_chunked_array__": true, "shape": {"0": dimension, ...},
 *              "chunks": {"0": array, "1": array, ...}}: arrays of more than 2^30 bytes, cut into
 *             arrays of one dimension
 *
 * The name of a tensor has the keys on the way to it, joined by "/".
 *
 * Reference: flax/serialization.py of Flax 0.10.
 */
#include "format/flax/flax.h"

#include "base/checked_math.h"
#include "format/shard_index.h"
#include "model/boxes.h"
#include "model/values.h"

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

static heft_status leave_out_all(pieces *p, uint64_t at)
{
    heft_index *x = p->t->x;
    heft_ix_left_out(x, HEFT_LEFT_OUT, "flax/dtype",
                     (heft_range){ at, heft_cur_pos(&p->t->c) - at },
                     "tensor %q is left out: type %q is none that Heft knows", p->name, p->type);
    heft_ix_omit(x, HEFT_WARNING, "flax/dtype", p->name, "has a type that Heft does not know");
    return HEFT_OK;
}

/* Add the array that a map stands for, after the head of the map, as one tensor. */
static heft_status flax_add_pieces(heft_msgpack_tree *t, const heft_msgpack_item *map)
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
    return p.dtype ? heft_ix_assembled_end(t->x, map->at) : leave_out_all(&p, map->at);
}

static const char what[] = "the tree";

/* ---- arrays ---- */

/* The bytes of an array of a type that Heft does not know become a part of the file. */
static heft_status leave_out(heft_msgpack_tree *t, heft_str name, const heft_flax_array *a)
{
    heft_ix_left_out(t->x, HEFT_LEFT_OUT, "flax/dtype", a->data,
                     "tensor %q is left out: type %q is none that Heft knows", name, a->type);
    heft_ix_omit(t->x, HEFT_WARNING, "flax/dtype", name, "has a type that Heft does not know");
    HEFT_TRY(heft_ix_part(t->x, HEFT_NONE, name, HEFT_UNTYPED, a->data, a->data.length, HEFT_RAW));
    heft_ix_part_is_left_out(t->x);
    return HEFT_OK;
}

static heft_status add_array(heft_msgpack_tree *t, const heft_flax_array *a)
{
    heft_str name;
    uint64_t *dims;
    uint32_t id;
    heft_dtype type = heft_flax_type(a->type);
    HEFT_TRY(heft_msgpack_tree_name(t, a->at, "array", &name));
    if (!type)
        return leave_out(t, name, a);
    if (a->rank > UINT16_MAX)
        return heft_error_set(t->x->err, HEFT_E_LIMIT, a->at,
                              "tensor %q: %U dimensions are not supported", name, a->rank);
    HEFT_TRY(heft_ix_tensor(t->x, name, type, (uint32_t)a->rank, &dims, &id));
    heft_cur shape = a->shape;
    for (uint64_t i = 0; i < a->rank; i++)
        dims[i] = heft_msgpack_u64(&shape, "a dimension of an array");
    HEFT_TRY(shape.st);
    return heft_ix_dense(t->x, id, a->at, a->data.offset, a->data.length);
}

/* A complex number of Python becomes two numbers of metadata. */
static heft_status add_complex(heft_msgpack_tree *t, const heft_msgpack_item *ext)
{
    heft_value v = { .kind = HEFT_KIND_ARRAY };
    heft_msgpack_item it;
    uint64_t end = heft_cur_pos(&t->c) + ext->u, bits;
    HEFT_TRY(heft_flax_expect(t, HEFT_MSGPACK_ARRAY, "the list of two numbers", &it));
    uint8_t *numbers = heft_arena_alloc(&t->x->arena, 2 * sizeof bits, sizeof bits);
    if (!numbers)
        return heft_msgpack_tree_no_memory(t);
    bool is_pair = it.u == 2;
    for (int i = 0; is_pair && i < 2; i++) {
        HEFT_TRY(heft_flax_expect(t, HEFT_MSGPACK_F64, "a part of a complex number", &it));
        memcpy(&bits, &it.f, sizeof bits);
        heft_put_le64(numbers + (size_t)i * sizeof bits, bits);
    }
    if (!is_pair || heft_cur_pos(&t->c) != end)
        return heft_cur_fail_at(&t->c, ext->at, "a complex number has other parts than two");
    HEFT_TRY(heft_msgpack_tree_name(t, ext->at, "value", &v.key));
    v.as.array.ptr = numbers;
    v.as.array.count = 2;
    v.as.array.dtype = HEFT_F64;
    heft_ix_omit(t->x, HEFT_WARNING, "flax/complex", v.key, "is a complex number of Python");
    return heft_ix_meta(t->x, v);
}

static heft_status take_extension(heft_msgpack_tree *t, const heft_msgpack_item *ext)
{
    heft_flax_array a;
    if (ext->i == HEFT_FLAX_COMPLEX)
        return add_complex(t, ext);
    if (ext->i != HEFT_FLAX_ARRAY && ext->i != HEFT_FLAX_SCALAR)
        return heft_cur_fail_at(&t->c, ext->at,
                                "extension %D is none of Flax's, which are 1, 2 and 3", ext->i);
    HEFT_TRY(heft_flax_read_array(t, ext, &a));
    if (ext->i == HEFT_FLAX_SCALAR && a.rank)
        return heft_cur_fail_at(&t->c, ext->at, "a number of NumPy has %U dimensions", a.rank);
    return add_array(t, &a);
}

/* Recognise an array in pieces, by the first key; the cursor does not move. */
static bool is_chunked(heft_msgpack_tree *t)
{
    heft_cur c = t->c;
    heft_msgpack_item key = heft_msgpack_next(&c);
    bool matches = key.kind == HEFT_MSGPACK_TEXT &&
                   heft_str_is(heft_msgpack_text(&c, &key), heft_flax_chunked);
    t->c.st = c.st;
    return matches && !c.st;
}

/* Pass over an array in pieces, in a build that assembles no tensors. */
static heft_status leave_out_pieces(heft_msgpack_tree *t, const heft_msgpack_item *map)
{
    heft_str name;
    HEFT_TRY(heft_msgpack_tree_name(t, map->at, "array", &name));
    heft_msgpack_skip(&t->c, map);
    HEFT_TRY(t->c.st);
    heft_ix_left_out(t->x, HEFT_LEFT_OUT, "flax/pieces",
                     (heft_range){ map->at, heft_cur_pos(&t->c) - map->at },
                     "tensor %q is left out: it is stored in pieces", name);
    heft_ix_omit(t->x, HEFT_WARNING, "flax/pieces", name, "is stored in pieces");
    return HEFT_OK;
}

static heft_status take(heft_msgpack_tree *t, heft_msgpack_item *item, bool *is_taken)
{
    bool is_map = item->kind == HEFT_MSGPACK_MAP;
    bool is_in_pieces = is_map && item->u && is_chunked(t);
    if (t->c.st)
        return t->c.st;
    *is_taken = !is_map || is_in_pieces;
    if (is_in_pieces)
        return HEFT_IS_LEAN ? leave_out_pieces(t, item) : flax_add_pieces(t, item);
    return is_map ? HEFT_OK : take_extension(t, item);
}

/* ---- the format ---- */

static bool is_own(heft_str file)
{
    return heft_str_ends(file, ".msgpack");
}

/* Read flax_model.msgpack.index.json, if the file begins as such a text does. */
static heft_status parse_index(heft_window *in, heft_index *x, bool *is_index)
{
    enum { FIRST = 8 };
    static const heft_shard_index_kind index = { .total_rule = "flax/total-size",
                                                 .mark_rule = "flax/byte-order-mark",
                                                 .is_own = is_own,
                                                 .title = "Flax" };
    heft_cur c = heft_cur_open(in, 0, in->size, what);
    const uint8_t *head = in->size < FIRST ? NULL : heft_cur_take(&c, FIRST);
    *is_index = head && heft_shard_index_is_json_object(head);
    return *is_index ? heft_shard_index_parse(in, x, &index) : c.st;
}

static heft_status parse_tree(heft_window *in, heft_index *x)
{
    heft_msgpack_tree t = heft_msgpack_tree_open(in, x, what, HEFT_FLAX_SEPARATOR);
    t.take = take;
    t.keeps_empty = true;
    heft_msgpack_item root = heft_msgpack_next(&t.c);
    heft_status st = t.c.st;
    if (!st && root.kind != HEFT_MSGPACK_MAP)
        st = heft_cur_fail_at(&t.c, root.at, "%s does not begin with a map", what);
    if (!st)
        st = heft_msgpack_tree_walk(&t, &root);
    if (!st && root.u && !heft_ix_tensors(x) && !x->left_out)
        st = heft_cur_fail_at(&t.c, root.at,
                              "the file is MessagePack without an array of Flax: it has no "
                              "weights; choose the file that has the parameters, as "
                              "flax.serialization writes them");
    if (!st && t.has_separator)
        heft_ix_omit(x, HEFT_WARNING, "flax/key", (heft_str){ NULL, 0 },
                     "a key has a \"/\": its parts become keys of their own");
    if (!st && heft_cur_left(&t.c))
        st = heft_cur_fail(&t.c, "%U bytes follow %s", heft_cur_left(&t.c), what);
    if (st == HEFT_AGAIN)
        heft_window_ask_ahead(in, heft_cur_pos(&t.c), heft_ix_tensors(x));
    heft_msgpack_tree_close(&t);
    return st ? st : heft_meta_unique(x, what);
}

static heft_status parse(heft_window *in, heft_index *x)
{
    bool is_index;
    heft_status st = parse_index(in, x, &is_index);
    return st || is_index ? st : parse_tree(in, x);
}

/* ---- recognition ---- */

/* Bytes that a head takes, or 0 if the byte does not begin a map with entries. */
static size_t map_head(const uint8_t *p, size_t len)
{
    return *p > 0x80 && *p < 0x90           ? 1
           : *p == 0xDE && len > 2          ? 3
           : *p == 0xDF && len > 4 && !p[1] ? 5 /* a map of less than 2^24 pairs */
                                            : 0;
}

/* Return the offset after the text at p, perhaps past the end; 0 if there is no text of UTF-8. */
static size_t after_text(const uint8_t *p, size_t len)
{
    size_t head = 0, bytes = 0;
    if (len && *p >= 0xA0 && *p < 0xC0) {
        head = 1;
        bytes = *p & 31;
    } else if (len > 2 && (*p == 0xD9 || *p == 0xDA)) {
        head = *p - 0xD7u;
        bytes = *p == 0xD9 ? p[1] : (size_t)p[1] << 8 | p[2];
    } else if (len > 4 && *p == 0xDB && !p[1]) { /* less than 2^24 bytes */
        head = 5;
        bytes = (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
    }
    size_t present = bytes < len - head ? bytes : len - head;
    bool is_whole = present == bytes; /* a text that is cut may end inside a character */
    return head && (!is_whole || heft_str_is_utf8((heft_str){ (const char *)p + head, present }))
               ? head + bytes
               : 0;
}

/* Return true if the bytes begin an extension of Flax. */
static bool is_leaf(const uint8_t *p, size_t len)
{
    size_t at = *p >= 0xD4 && *p <= 0xD8   ? 1
                : *p >= 0xC7 && *p <= 0xC9 ? (1u << (*p - 0xC7)) + 1
                                           : 0;
    return at && at < len && p[at] >= HEFT_FLAX_ARRAY && p[at] <= HEFT_FLAX_SCALAR;
}

/* Follow the first keys of nested maps to the first leaf.  A file that has other values first, or
 * longer keys than the bytes at hand, is recognised less surely.  The single byte of an empty tree
 * could be the first of a pickle as well. */
static int probe(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                 uint64_t size)
{
    enum { SURE = 48, LISTED = 40, PERHAPS = 12 };
    size_t at = 0, step;
    (void)tail;
    (void)tail_len;
    if (size == sizeof heft_flax_empty && !memcmp(head, heft_flax_empty, sizeof heft_flax_empty))
        return PERHAPS;
    if (heft_shard_index_recognise(head, head_len) &&
        is_own(heft_shard_index_first_shard(head, head_len)))
        return LISTED; /* must exceed safetensors' result for the same text */
    while (at < head_len && (step = map_head(head + at, head_len - at)) != 0) {
        at += step;
        step = at < head_len ? after_text(head + at, head_len - at) : 0;
        if (!step)
            return 0;
        at += step;
    }
    return at && at < head_len && is_leaf(head + at, head_len - at) ? SURE : at ? PERHAPS : 0;
}

static const heft_name_rules name_rules = { "flax/name", NULL, NULL, "flax/rank" };

const heft_format heft_format_flax = {
    .name = "flax",
    .title = "Flax",
    .structure_rule = "flax/structure",
    .name_rules = &name_rules,
    .suffixes = ".msgpack",
    .versions = "",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_EDIT | HEFT_CAN_SCHEMES | HEFT_CAN_META,
    .align = 1,
    .probe = probe,
    .parse = parse,
};

const heft_format_writer heft_format_writer_flax = {
    .plan = heft_flax_plan,
    .write_header = heft_flax_write_header,
    .write_record_header = heft_flax_write_record_header,
    .write_trailer = heft_flax_write_trailer,
    .sharding = &heft_flax_sharding,
};
