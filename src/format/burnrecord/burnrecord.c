/* burnrecord.c - reads records of Burn's NamedMpkFileRecorder up to version 0.21: MessagePack, with
 * structures as maps from field names to values.
 *
 *   {"metadata": {"float": text, "int": text, "format": text, "version": text, "settings": text},
 *    "item": content of the record,
 *    "_b": nil}
 *
 *   parameter   {"id": text, "param": tensor}; older: "value" instead of "param"
 *   tensor      {"bytes": bytes or a list of bytes, "shape": [...], "dtype": type}
 *               before 0.14 {"value": list of numbers, "shape": [...]}: the metadata has the types
 *   module      {field: value, ...}, a list of values, or {variant: value} of an enum
 *   nil         absent parts of a module, and constants
 *
 * Reference: burn-core/src/record and burn-tensor/src/tensor/data.rs of Burn 0.8 to 0.21.
 */
#include "format/burnrecord/burnrecord.h"

#include "format/burn_types.h"
#include "model/values.h"

typedef struct fields { /* a map that may be a tensor */
    heft_msgpack_item data;
    heft_msgpack_facts facts; /* about the list, if the data is a list of numbers */
    heft_range where;         /* file range of the list, or of the bytes */
    heft_cur shape, type;     /* position of the values */
    uint64_t rank;
    bool has_bytes, has_value, has_shape, has_type;
    bool is_packed; /* the data is a byte string, not a list */
} fields;

/* ---- recognition ---- */

static bool scan_data(heft_record *r, fields *f)
{
    f->data = heft_msgpack_next(&r->tree.c);
    if (r->tree.c.st)
        return false;
    f->is_packed = f->data.kind == HEFT_MSGPACK_BYTES;
    f->where.offset = f->is_packed ? heft_cur_pos(&r->tree.c) : f->data.at;
    f->where.length = f->data.u;
    if (f->is_packed)
        heft_cur_skip(&r->tree.c, f->data.u);
    else if (f->data.kind != HEFT_MSGPACK_ARRAY ||
             !heft_msgpack_scan(&f->facts, &r->tree.c, f->data.u))
        return false;
    if (!f->is_packed)
        f->where.length = f->facts.end - f->where.offset;
    return !r->tree.c.st;
}

static bool scan_field(heft_record *r, fields *f)
{
    heft_msgpack_item key = heft_msgpack_next(&r->tree.c);
    if (key.kind != HEFT_MSGPACK_TEXT)
        return false;
    heft_str name = heft_msgpack_text(&r->tree.c, &key);
    if (r->tree.c.st)
        return false;
    bool is_bytes = heft_str_is(name, "bytes"), is_value = heft_str_is(name, "value");
    if ((is_bytes || is_value) && !f->has_bytes && !f->has_value) {
        f->has_bytes = is_bytes;
        f->has_value = is_value;
        return scan_data(r, f);
    }
    bool is_shape = heft_str_is(name, "shape") && !f->has_shape;
    if (!is_shape && (!heft_str_is(name, "dtype") || f->has_type))
        return false;
    heft_cur begin = r->tree.c;
    heft_msgpack_item it = heft_msgpack_next(&r->tree.c);
    if (is_shape) { /* add() reports errors in the list */
        f->has_shape = it.kind == HEFT_MSGPACK_ARRAY;
        f->rank = it.u;
        f->shape = r->tree.c;
    } else {
        f->has_type = it.kind == HEFT_MSGPACK_TEXT || it.kind == HEFT_MSGPACK_MAP;
        f->type = begin;
    }
    if (!(is_shape ? f->has_shape : f->has_type))
        return false;
    heft_msgpack_skip(&r->tree.c, &it);
    return !r->tree.c.st;
}

/* Return false if the map is not a tensor, or the cursor failed. */
static bool scan_fields(heft_record *r, const heft_msgpack_item *map, fields *f)
{
    enum { OLD = 2, NEW = 3 };
    if (map->u != OLD && map->u != NEW)
        return false;
    for (uint64_t i = 0; i < map->u; i++)
        if (!scan_field(r, f))
            return false;
    return map->u == OLD ? f->has_value && f->has_shape && !f->is_packed
                         : (f->has_bytes || f->has_value) && f->has_shape && f->has_type;
}

/* ---- types ---- */

/* Return the type of a list of numbers, from the common kind of all numbers and the types in the
 * metadata. */
static heft_status type_of_numbers(heft_record *r, const fields *f, heft_dtype *out)
{
    const heft_msgpack_facts *n = &f->facts;
    if (n->bools + n->ints + n->f32 + n->f64 > 1)
        return heft_error_set(r->tree.x->err, HEFT_E_FORMAT, f->data.at,
                              "a tensor has numbers of several kinds");
    bool is_half = r->floats == HEFT_F16 || r->floats == HEFT_BF16;
    *out = n->f32 ? HEFT_F32 : n->f64 ? HEFT_F64 : n->bools ? HEFT_BOOL : r->floats;
    if (n->ints && !is_half)
        *out = r->ints;
    r->may_be_halves = r->may_be_halves || (n->ints && is_half);
    return *out == HEFT_UNTYPED
               ? heft_error_set(r->tree.x->err, HEFT_E_UNSUPPORTED, f->data.at,
                                "the metadata does not state the type of a tensor's numbers")
               : HEFT_OK;
}

/* Return true if all integers fit in the type, or are the bits of a half-precision type. */
static bool fits(const heft_msgpack_facts *n, heft_dtype t)
{
    uint32_t bits = 8 * heft_dtype_size(t);
    uint64_t limit = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    if (!heft_dtype_is_signed_int(t))
        return !n->min && n->max <= limit;
    return n->max <= limit / 2 && n->min >= -(int64_t)(limit / 2) - 1;
}

/* ---- adding ---- */

/* Add the data: bytes, or a list of numbers that decode to `size` bytes each. */
static heft_status put_part(heft_record *r, const fields *f, uint32_t id, const heft_record_type *t,
                            uint32_t size)
{
    heft_index *x = r->tree.x;
    /* The product cannot overflow, because a list has less than 2^32 items. */
    uint64_t content = f->is_packed ? f->where.length : f->data.u * size, bytes = 0, elements;
    heft_encoding e = f->is_packed || !f->data.u ? HEFT_RAW : HEFT_MSGPACK;
    if (t->is_quantized)
        return heft_ix_part(x, id, heft_lit("data"), t->dtype,
                            e ? f->where : (heft_range){ f->where.offset, content }, content, e);
    if (!e)
        return heft_ix_dense(x, id, f->data.at, f->where.offset, content);
    const heft_ix_tensor_row *row = heft_ix_row(x, id);
    if (heft_product(&elements, heft_ix_dims(x, id), row->rank) &&
        heft_dtype_bytes(&bytes, t->dtype, elements) && bytes == content)
        return heft_ix_strided(x, id, f->data.at, f->where, e, content, 0, NULL);
    return heft_error_set(x->err, HEFT_E_FORMAT, f->data.at,
                          "tensor %q: a list of %U numbers does not match the shape",
                          heft_ix_name(x, id), f->data.u);
}

/* Return the value of a digit (0 to 9, a to v), or 32. */
static uint64_t digit_of(char c)
{
    return c >= '0' && c <= '9'   ? (uint64_t)(c - '0')
           : c >= 'a' && c <= 'v' ? (uint64_t)(c - 'a') + 10
                                  : 32;
}

/* Decode eight bytes in base 32 with DNSSEC's alphabet, lowest byte first. */
static bool read_base32(uint64_t *out, heft_str s)
{
    enum { DIGITS = 13 };
    uint64_t bits = 0;
    if (s.len != DIGITS)
        return false;
    for (size_t i = 0; i < DIGITS; i++) {
        uint64_t digit = digit_of(s.ptr[i]);
        if (digit == 32 || (i + 1 == DIGITS && digit & 1))
            return false;
        bits = i + 1 == DIGITS ? bits << 4 | digit >> 1 : bits << 5 | digit;
    }
    *out = 0;
    for (unsigned i = 0; i < 8; i++)
        *out |= (bits >> 8 * i & 255) << (56 - 8 * i);
    return true;
}

/* Decode the first eight bytes of a UUID, big-endian, as Burn reads ids written before 0.14. */
static bool read_uuid(uint64_t *out, heft_str s)
{
    enum { DIGITS = 32, WITH_DASHES = 36, USED = 16 };
    size_t digits = 0;
    *out = 0;
    if (s.len != DIGITS && s.len != WITH_DASHES)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (s.len == WITH_DASHES && (i == 8 || i == 13 || i == 18 || i == 23)) {
            if (c != '-')
                return false;
            continue;
        }
        uint64_t digit = digit_of(c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c);
        if (digit >= 16)
            return false;
        *out = digits++ < USED ? *out << 4 | digit : *out;
    }
    return true;
}

/* Store the id as a number; also as text unless the number represents the whole id. */
static heft_status put_id(heft_record *r, uint32_t id)
{
    uint64_t number;
    if (!r->id.ptr)
        return HEFT_OK;
    bool is_base32 = read_base32(&number, r->id);
    if (is_base32 || read_uuid(&number, r->id))
        HEFT_TRY(heft_ix_param_id(r->tree.x, id, number));
    return is_base32 ? HEFT_OK : heft_ix_attr_text(r->tree.x, id, heft_lit("burn.id"), r->id);
}

static heft_status add(heft_record *r, const fields *f, const heft_record_type *t, uint32_t size)
{
    heft_str name;
    uint64_t *dims;
    uint32_t id;
    HEFT_TRY(heft_msgpack_tree_name(&r->tree, f->data.at, "tensor", &name));
    if (f->rank > UINT16_MAX)
        return heft_error_set(r->tree.x->err, HEFT_E_LIMIT, f->data.at,
                              "tensor %q: %U dimensions are not supported", name, f->rank);
    HEFT_TRY(heft_ix_tensor(r->tree.x, name, t->dtype, (uint32_t)f->rank, &dims, &id));
    heft_cur shape = f->shape;
    for (uint64_t i = 0; i < f->rank; i++)
        dims[i] = heft_msgpack_u64(&shape, "a dimension of a tensor");
    HEFT_TRY(shape.st);
    if (t->is_quantized)
        HEFT_TRY(heft_ix_set_layout(r->tree.x, id, heft_lit(heft_burn_qfloat)));
    HEFT_TRY(put_part(r, f, id, t, size));
    if (t->stored.ptr)
        HEFT_TRY(heft_ix_attr_text(r->tree.x, id, heft_lit("stored_dtype"), t->stored));
    return put_id(r, id);
}

/* A tensor with {"bytes", "shape", "dtype"}; bytes may be a list of integers. */
static heft_status add_typed(heft_record *r, const fields *f)
{
    heft_record_type t;
    heft_cur after = r->tree.c;
    r->tree.c = f->type;
    heft_status st = heft_record_read_type(r, &t);
    r->tree.c = after;
    const heft_msgpack_facts *n = &f->facts;
    if (!st && !f->is_packed && (n->bools || n->f32 || n->f64 || !fits(n, HEFT_U8)))
        return heft_error_set(r->tree.x->err, HEFT_E_FORMAT, f->data.at,
                              "the bytes of a tensor are a list, but not of bytes");
    return st ? st : add(r, f, &t, 1);
}

/* A tensor with {"value", "shape"}. */
static heft_status add_numbers(heft_record *r, const fields *f)
{
    heft_record_type t = { .dtype = HEFT_UNTYPED };
    HEFT_TRY(type_of_numbers(r, f, &t.dtype));
    if (f->facts.ints && !fits(&f->facts, t.dtype))
        return heft_error_set(r->tree.x->err, HEFT_E_FORMAT, f->data.at,
                              "a list of integers exceeds the type %s, which the metadata states",
                              heft_dtype_name(t.dtype));
    return add(r, f, &t, heft_dtype_size(t.dtype));
}

/* Add a tensor if a map, after the head was read, represents a tensor.  Otherwise *is_tensor is
 * false and the cursor does not move. */
static heft_status record_tensor(heft_record *r, const heft_msgpack_item *map, bool *is_tensor)
{
    fields f = { .rank = 0 };
    heft_cur begin = r->tree.c;
    *is_tensor = scan_fields(r, map, &f);
    if (!*is_tensor) {
        heft_status st = r->tree.c.st;
        r->tree.c = st ? r->tree.c : begin;
        return st;
    }
    return f.has_type ? add_typed(r, &f) : add_numbers(r, &f);
}

static const char what[] = "the record";

/* ---- metadata ---- */

static heft_status read_text(heft_record *r, const char *field, heft_str *out)
{
    heft_msgpack_item it = heft_msgpack_next(&r->tree.c);
    if (!r->tree.c.st && it.kind != HEFT_MSGPACK_TEXT)
        return heft_cur_fail_at(&r->tree.c, it.at, "%s: %s is not a string", what, field);
    *out = heft_msgpack_text(&r->tree.c, &it);
    return r->tree.c.st;
}

static heft_status read_metadata(heft_record *r)
{
    static const char prefix[] = "burn.";
    enum { PREFIX = sizeof prefix - 1 };
    heft_msgpack_item map = heft_msgpack_next(&r->tree.c);
    heft_status st = r->tree.c.st;
    if (!st && map.kind != HEFT_MSGPACK_MAP)
        return heft_cur_fail_at(&r->tree.c, map.at, "%s: the metadata is not a map", what);
    for (uint64_t i = 0; !st && i < map.u; i++) {
        heft_str key, value;
        st = read_text(r, "a key of the metadata", &key);
        if (!st)
            st = read_text(r, "a value of the metadata", &value);
        char *name = st ? NULL : heft_arena_alloc(&r->tree.x->arena, PREFIX + key.len, 1);
        if (!name)
            return st ? st : heft_msgpack_tree_no_memory(&r->tree);
        memcpy(name, prefix, PREFIX);
        memcpy(name + PREFIX, key.ptr, key.len);
        if (heft_str_is(key, "version"))
            r->tree.x->version = value;
        if (heft_str_is(key, "float"))
            r->floats = heft_record_rust_type(value);
        if (heft_str_is(key, "int"))
            r->ints = heft_record_rust_type(value);
        st = heft_ix_meta_text(r->tree.x, (heft_str){ name, PREFIX + key.len }, value);
    }
    return st;
}

/* ---- tensors and parameters ---- */

/* Recognise {"id": text, "param": ...}, set *id, and make the value *item; otherwise *is_param is
 * false and the cursor does not move. */
static heft_status recognise_param(heft_record *r, heft_msgpack_item *item, heft_str *id,
                                   bool *is_param)
{
    heft_cur begin = r->tree.c;
    *is_param = false;
    if (item->u != 2)
        return HEFT_OK;
    heft_msgpack_item it = heft_msgpack_next(&r->tree.c);
    bool matches = it.kind == HEFT_MSGPACK_TEXT &&
                   heft_str_is(heft_msgpack_text(&r->tree.c, &it), "id");
    if (matches)
        it = heft_msgpack_next(&r->tree.c);
    matches = matches && it.kind == HEFT_MSGPACK_TEXT;
    if (matches) {
        *id = heft_msgpack_text(&r->tree.c, &it);
        it = heft_msgpack_next(&r->tree.c);
    }
    matches = matches && it.kind == HEFT_MSGPACK_TEXT;
    heft_str key = matches ? heft_msgpack_text(&r->tree.c, &it) : heft_lit("");
    *is_param = matches && (heft_str_is(key, "param") || heft_str_is(key, "value"));
    if (*is_param)
        *item = heft_msgpack_next(&r->tree.c);
    if (r->tree.c.st)
        return r->tree.c.st;
    r->tree.c = *is_param ? r->tree.c : begin;
    return HEFT_OK;
}

static heft_status pass_over(heft_msgpack_tree *t, const heft_msgpack_item *extension)
{
    heft_msgpack_skip(&t->c, extension);
    if (!t->c.st)
        heft_ix_note(t->x, HEFT_NOTE, "burn-record/extension", extension->at, HEFT_NONE,
                     "a MessagePack extension is left out");
    return t->c.st;
}

/* Take a tensor, and pass over an extension.  A parameter stands for the value that it has. */
static heft_status take(heft_msgpack_tree *t, heft_msgpack_item *item, bool *is_taken)
{
    heft_record *r = t->ctx;
    heft_str id = { NULL, 0 };
    bool is_param = false;
    if (item->kind == HEFT_MSGPACK_MAP)
        HEFT_TRY(recognise_param(r, item, &id, &is_param));
    r->id = is_param ? id : (heft_str){ NULL, 0 };
    *is_taken = item->kind == HEFT_MSGPACK_EXT;
    return *is_taken                        ? pass_over(t, item)
           : item->kind == HEFT_MSGPACK_MAP ? record_tensor(r, item, is_taken)
                                            : HEFT_OK;
}

/* ---- the record ---- */

static heft_status read_record(heft_record *r)
{
    bool has_item = false;
    heft_msgpack_item map = heft_msgpack_next(&r->tree.c);
    if (!r->tree.c.st && map.kind != HEFT_MSGPACK_MAP)
        return heft_cur_fail_at(&r->tree.c, map.at, "%s does not begin with a map", what);
    heft_status st = r->tree.c.st;
    for (uint64_t i = 0; !st && i < map.u; i++) {
        heft_str key;
        st = read_text(r, "a key", &key);
        if (st)
            return st;
        if (heft_str_is(key, "metadata")) {
            st = read_metadata(r);
            continue;
        }
        bool is_item = heft_str_is(key, "item");
        if (is_item && has_item)
            return heft_cur_fail(&r->tree.c, "%s has two items", what);
        has_item = has_item || is_item;
        heft_msgpack_item it = heft_msgpack_next(&r->tree.c);
        if (!is_item)
            heft_msgpack_skip(&r->tree.c, &it);
        st = r->tree.c.st;
        if (!st && is_item)
            st = heft_msgpack_tree_walk(&r->tree, &it);
    }
    if (!st && !has_item)
        return heft_cur_fail_at(&r->tree.c, map.at, "%s has no item", what);
    if (!st && heft_cur_left(&r->tree.c))
        heft_ix_note(r->tree.x, HEFT_WARNING, "burn-record/trailing", heft_cur_pos(&r->tree.c),
                     HEFT_NONE, "unexpected bytes after the record");
    if (!st && r->may_be_halves)
        heft_ix_note(
            r->tree.x, HEFT_NOTE, "burn-record/half", 0, HEFT_NONE,
            "half-precision records store floats and integers alike: lists of integers are "
            "interpreted as floats");
    return st;
}

static heft_status parse(heft_window *in, heft_index *x)
{
    heft_record r = { .floats = HEFT_UNTYPED, .ints = HEFT_UNTYPED };
    r.tree = heft_msgpack_tree_open(in, x, what, '.');
    r.tree.take = take;
    r.tree.ctx = &r;
    heft_status st = read_record(&r);
    if (st == HEFT_AGAIN)
        heft_window_ask_ahead(in, heft_cur_pos(&r.tree.c), heft_ix_tensors(x));
    heft_msgpack_tree_close(&r.tree);
    return st ? st : heft_meta_unique(x, "the item of the record");
}

/* Recognise a map that begins with the key "metadata", and there a map that begins with the key
 * "float". */
static int probe(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                 uint64_t size)
{
    static const char first[] = "\xa8metadata", second[] = "\xa5"
                                                           "float";
    enum { SURE = 100, FIRST = sizeof first - 1, SECOND = sizeof second - 1 };
    (void)tail;
    (void)tail_len;
    (void)size;
    bool matches = head_len > 2 + FIRST + SECOND && head[0] > 0x80 && head[0] < 0x90 &&
                   !memcmp(head + 1, first, FIRST) && head[1 + FIRST] > 0x80 &&
                   head[1 + FIRST] < 0x90 && !memcmp(head + 2 + FIRST, second, SECOND);
    return matches ? SURE : 0;
}

static const heft_name_rules name_rules = { "burn-record/name", NULL, NULL, "burn-record/rank" };

const heft_format heft_format_burn_record = {
    .name = "burn-record",
    .title = "Burn record",
    .structure_rule = "burn-record/structure",
    .name_rules = &name_rules,
    .suffixes = ".mpk .mpk.gz",
    .versions = "",
    .caps = HEFT_CAN_READ | HEFT_CAN_META,
    .align = 64,
    .may_be_gzipped = true,
    .probe = probe,
    .parse = parse,
};

const heft_format_writer heft_format_writer_burn_record = { .plan = NULL }; /* read only */
