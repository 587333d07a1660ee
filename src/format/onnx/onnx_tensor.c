/* onnx_tensor.c - reads TensorProto and SparseTensorProto.
 *
 *   TensorProto        1 dims  2 data_type  3 segment  8 name  14 data_location: 1 external
 *                      9 raw_data: the elements, little-endian
 *                      4 to 7, 10, 11: the elements as numbers, by type, packed or not
 *                      13 external_data: {1 key, 2 value}: location, offset, length, checksum
 *   SparseTensorProto  1 values  2 indices: [n] or [n, rank]  3 dims
 */
#include "format/onnx/onnx.h"

#include "base/path_risk.h"
#include "grammar/json.h"

enum { DIMS = 1, TYPE = 2, SEGMENT = 3, NAME = 8, RAW = 9, EXTERNAL = 13, LOCATION = 14 };

static const char what[] = "a tensor";

/* ---- external data ---- */

/* Read a number in decimal. */
static heft_status read_decimal(heft_cur *c, const heft_protobuf_field *f, heft_str value,
                                uint64_t *out)
{
    return heft_json_u64(out, value)
               ? HEFT_OK
               : heft_cur_fail_at(c, f->at, "external data: %q is not a number", value);
}

static heft_status read_external(heft_onnx *o, heft_cur *c, const heft_protobuf_field *entry,
                                 heft_onnx_tensor *t)
{
    heft_str texts[3] = { { "", 0 }, { "", 0 }, { "", 0 } };
    heft_cur e = heft_protobuf_open(o->in, entry->bytes, what);
    for (heft_protobuf_field f; heft_protobuf_next(&e, &f);)
        if (f.number == 1 || f.number == 2)
            texts[f.number] = heft_protobuf_text(&e, &f);
    if (e.st)
        return c->st = e.st;
    if (heft_str_is(texts[1], "location"))
        t->location = texts[2];
    else if (heft_str_is(texts[1], "offset"))
        return read_decimal(c, entry, texts[2], &t->offset);
    else if (heft_str_is(texts[1], "length"))
        return read_decimal(c, entry, texts[2], &t->length);
    else if (heft_str_is(texts[1], "checksum"))
        t->has_checksum = true;
    return HEFT_OK;
}

/* ONNX Runtime names its own memory so. */
static const char memory_address[] = "*/_ORT_MEM_ADDR_/*";

/* Set *number to that of the file of external data, for heft_global_offset(). */
static heft_status number_of_file(heft_onnx *o, const heft_onnx_tensor *t, uint32_t *number)
{
    heft_str path = t->location;
    while (path.len > 2 && path.ptr[0] == '.' && path.ptr[1] == '/')
        path = (heft_str){ path.ptr + 2, path.len - 2 };
    if (!heft_str_is_inner_path(path) || heft_str_path_risk(path) != HEFT_PATH_PLAIN ||
        heft_str_is(path, memory_address))
        return heft_error_set(o->x->err, HEFT_E_FORMAT, t->message.offset,
                              "tensor %q: external data in %q, which is not the path of a file "
                              "inside of the folder of the model",
                              t->name, t->location);
    o->x->has_inner_paths = true;
    return heft_names_add_file(&o->files, o->x, path, number);
}

/* ---- reading ---- */

/* Note a record of the field that has the numbers. */
static heft_status take_numbers(heft_cur *c, const heft_protobuf_field *f, heft_onnx_tensor *t)
{
    if (t->data_field && t->data_field != f->number)
        return heft_cur_fail_at(c, f->at, "tensor %q has numbers in two fields, %U and %U", t->name,
                                (uint64_t)t->data_field, (uint64_t)f->number);
    if (t->data_field && f->number == RAW)
        return heft_cur_fail_at(c, f->at, "tensor %q has raw_data twice", t->name);
    t->is_one_record = !t->data_field && f->wire == HEFT_WIRE_BYTES;
    t->packed = f->bytes;
    if (!t->data_field)
        t->data.offset = f->at;
    t->data.length = heft_cur_pos(c) - t->data.offset;
    t->data_field = f->number;
    return HEFT_OK;
}

/* Count the dimensions in a record of dims; dims NULL: only count. */
static heft_status read_dims(heft_onnx *o, heft_cur *c, const heft_protobuf_field *f,
                             uint64_t *dims, uint64_t *rank)
{
    heft_cur list = heft_protobuf_open(o->in, f->bytes, what);
    bool is_list = f->wire == HEFT_WIRE_BYTES;
    while (is_list ? heft_cur_left(&list) && !list.st : true) {
        uint64_t dim = is_list ? heft_protobuf_varint(&list) : f->u;
        if ((int64_t)dim < 0)
            return heft_cur_fail_at(c, f->at, "%s has a dimension of %D", what, (int64_t)dim);
        if (dims)
            dims[*rank] = dim;
        ++*rank;
        if (!is_list)
            break;
    }
    return list.st ? (c->st = list.st) : HEFT_OK;
}

static heft_status read_field(heft_onnx *o, heft_cur *c, const heft_protobuf_field *f,
                              heft_onnx_tensor *t)
{
    switch (f->number) {
    case DIMS:
        return read_dims(o, c, f, NULL, &t->rank);
    case TYPE:
        t->type = f->u;
        return HEFT_OK;
    case SEGMENT:
        return heft_error_set(o->x->err, HEFT_E_UNSUPPORTED, f->at, "%s is stored in segments",
                              what);
    case NAME:
        t->name = heft_protobuf_text(c, f);
        return c->st;
    case EXTERNAL:
        return read_external(o, c, f, t);
    case LOCATION:
        t->is_external = f->u == 1;
        return HEFT_OK;
    case RAW:
    case 4:  /* float_data */
    case 5:  /* int32_data */
    case 6:  /* string_data */
    case 7:  /* int64_data */
    case 10: /* double_data */
    case 11: /* uint64_data */
        return take_numbers(c, f, t);
    default:
        return HEFT_OK;
    }
}

heft_status heft_onnx_read_tensor(heft_onnx *o, heft_range message, heft_onnx_tensor *t)
{
    heft_cur c = heft_protobuf_open(o->in, message, what);
    *t = (heft_onnx_tensor){
        .message = message, .name = { "", 0 }, .location = { "", 0 }, .length = HEFT_UNKNOWN_LENGTH
    };
    for (heft_protobuf_field f; heft_protobuf_next(&c, &f);)
        HEFT_TRY(read_field(o, &c, &f, t));
    return c.st;
}

/* ---- adding ---- */

static heft_status fail(const heft_onnx *o, const heft_onnx_tensor *t, heft_str name,
                        const char *text)
{
    return heft_error_set(o->x->err, HEFT_E_FORMAT, t->message.offset, "tensor %q: %s", name, text);
}

static heft_status fill_dims(heft_onnx *o, const heft_onnx_tensor *t, uint64_t *dims)
{
    uint64_t rank = 0;
    heft_cur c = heft_protobuf_open(o->in, t->message, what);
    for (heft_protobuf_field f; heft_protobuf_next(&c, &f);)
        if (f.number == DIMS)
            HEFT_TRY(read_dims(o, &c, &f, dims, &rank));
    return c.st;
}

/* Note where the TensorProto is whose elements are this part. */
static heft_status list_message(heft_onnx *o, const heft_onnx_tensor *t, uint32_t part)
{
    heft_onnx_message m = { t->message, part, o->is_initializer, t->is_external };
    if (!o->listed || t->is_attribute)
        return HEFT_OK;
    return heft_vec_add(&o->x->mem, o->listed, &m, sizeof m) ? HEFT_OK : heft_ix_no_memory(o->x);
}

heft_status heft_onnx_leave_out(heft_onnx *o, const heft_onnx_tensor *t, heft_str name)
{
    heft_range where = t->data_field ? t->data : t->message;
    bool is_text = heft_onnx_type_of(t->type);
    const char *rule = is_text ? "onnx/text" : "onnx/type";
    heft_ix_left_out(o->x, HEFT_LEFT_OUT, rule, where,
                     is_text ? "tensor %q is left out: it has texts, not numbers"
                             : "tensor %q is left out: element type %U is none that Heft knows",
                     name, t->type);
    HEFT_TRY(heft_ix_part(o->x, HEFT_NONE, name, HEFT_UNTYPED, where, where.length, HEFT_RAW));
    heft_ix_part_is_left_out(o->x);
    return list_message(o, t, HEFT_NONE);
}

/* ---- elements of 2 and 4 bits ---- */

/* Several elements share a byte, also across rows.  The tensor is listed by bytes, and attributes
 * say what they are. */
static heft_status pack(heft_onnx *o, uint32_t id, const heft_onnx_type *type)
{
    uint32_t rank = heft_ix_row(o->x, id)->rank;
    uint64_t *dims = heft_ix_dims(o->x, id), count;
    heft_value v = { .kind = HEFT_KIND_ARRAY, .key = heft_lit("onnx.shape") };
    uint8_t *shape = heft_arena_alloc(&o->x->arena, (rank + 1) * sizeof *dims, sizeof *dims);
    if (!shape)
        return heft_ix_no_memory(o->x);
    if (!heft_product(&count, dims, rank))
        count = UINT64_MAX; /* the size of the data will differ */
    for (uint32_t i = 0; i < rank; i++) {
        heft_put_le64(shape + i * sizeof *dims, dims[i]);
        dims[i] = 1;
    }
    uint64_t bytes = heft_div(count, type->per_byte);
    if (rank)
        dims[rank - 1] = bytes + (bytes * type->per_byte != count);
    v.as.array.ptr = shape;
    v.as.array.count = rank;
    v.as.array.dtype = HEFT_U64;
    HEFT_TRY(heft_ix_attr_text(o->x, id, heft_lit("onnx.type"), heft_lit(type->name)));
    return heft_ix_attr(o->x, id, v);
}

/* ---- adding ---- */

/* Note that a file has a stated checksum, which new values of a tensor would make wrong. */
static void note_checksum(heft_onnx *o, const heft_onnx_tensor *t, uint32_t file)
{
    if (!t->has_checksum || o->noted == file + 1)
        return;
    o->noted = file + 1;
    heft_ix_note_range(o->x, HEFT_NOTE, "onnx/checksum", t->message, heft_ix_tensors(o->x) - 1,
                       "the checksum of its external data is not compared");
}

/* Find the elements.  They are raw if they are external, in raw_data, or in a record of numbers of
 * fixed size. */
static heft_status find_data(heft_onnx *o, const heft_onnx_tensor *t, heft_dtype type,
                             heft_range *where, heft_encoding *e)
{
    bool is_fixed = type == HEFT_F32 || type == HEFT_F64 || heft_dtype_is_complex(type);
    uint32_t file;
    *e = HEFT_RAW;
    *where = (heft_range){ t->message.offset, 0 };
    if (t->is_external) {
        if (t->offset >> HEFT_GLOBAL_OFFSET_BITS)
            return fail(o, t, t->name, "the offset of its external data is out of range");
        HEFT_TRY(number_of_file(o, t, &file));
        note_checksum(o, t, file);
        *where = (heft_range){ heft_global_offset(file, t->offset), t->length };
    } else if (t->is_one_record && (t->data_field == RAW || is_fixed))
        *where = t->packed;
    else if (t->data_field) {
        *where = t->data;
        *e = HEFT_PROTOBUF;
    }
    return HEFT_OK;
}

heft_status heft_onnx_add_part(heft_onnx *o, const heft_onnx_tensor *t, uint32_t id, heft_str role,
                               heft_dtype type, uint64_t count)
{
    heft_range where;
    heft_encoding e;
    uint64_t bytes;
    heft_str name = heft_ix_name(o->x, id);
    if (!heft_dtype_bytes(&bytes, type, count) || bytes > INT64_MAX)
        return fail(o, t, name, "the shape has too many elements");
    HEFT_TRY(find_data(o, t, type, &where, &e));
    if (t->is_external && t->length == HEFT_UNKNOWN_LENGTH)
        where.length = bytes;
    if (!t->is_external && bytes && !t->data_field)
        return fail(o, t, name, "it has no elements");
    if (!e && where.length != bytes)
        return heft_error_set(o->x->err, HEFT_E_FORMAT, t->message.offset,
                              "tensor %q: %U bytes of data, the shape needs %U", name, where.length,
                              bytes);
    HEFT_TRY(list_message(o, t, o->x->parts.len));
    return heft_ix_part(o->x, id, role, type, where, bytes, e);
}

/* Return the type of the elements; NULL: it is unknown, or texts. */
static heft_status type_of(const heft_onnx *o, const heft_onnx_tensor *t, heft_str name,
                           const heft_onnx_type **out)
{
    const heft_onnx_type *type = heft_onnx_type_of(t->type);
    *out = type && type->dtype ? type : NULL;
    if (t->is_external && !t->location.len)
        return fail(o, t, name, "its external data have no location");
    if (*out && t->data_field && t->data_field != RAW && t->data_field != type->field)
        return heft_error_set(o->x->err, HEFT_E_FORMAT, t->data.offset,
                              "tensor %q: field %U has no numbers of type %s", name,
                              (uint64_t)t->data_field, type->name);
    return HEFT_OK;
}

heft_status heft_onnx_add_tensor(heft_onnx *o, const heft_onnx_tensor *t, heft_str name)
{
    const heft_onnx_type *type;
    uint64_t *dims, count;
    uint32_t id;
    HEFT_TRY(type_of(o, t, name, &type));
    if (!type)
        return heft_onnx_leave_out(o, t, name);
    if (t->rank > UINT16_MAX)
        return heft_error_set(o->x->err, HEFT_E_LIMIT, t->message.offset,
                              "tensor %q: %U dimensions are not supported", name, t->rank);
    HEFT_TRY(heft_ix_tensor(o->x, name, type->dtype, (uint32_t)t->rank, &dims, &id));
    HEFT_TRY(fill_dims(o, t, dims));
    if (type->per_byte)
        HEFT_TRY(pack(o, id, type));
    if (!heft_product(&count, heft_ix_dims(o->x, id), (uint32_t)t->rank))
        count = UINT64_MAX;
    HEFT_TRY(heft_onnx_add_part(o, t, id, heft_ix_data, type->dtype, count));
    return heft_onnx_add_use(o, id);
}

/* ---- sparse tensors ---- */

typedef struct sparse {
    heft_onnx_tensor values, indices;
    uint64_t rank, at, count; /* count: values */
    bool has_values, has_indices;
} sparse;

static heft_status read_sparse(heft_onnx *o, heft_range message, sparse *s, uint64_t *dims)
{
    heft_cur c = heft_protobuf_open(o->in, message, "a sparse tensor");
    s->rank = 0;
    for (heft_protobuf_field f; heft_protobuf_next(&c, &f);) {
        if (f.number == 1 || f.number == 2)
            HEFT_TRY(heft_onnx_read_tensor(o, f.bytes, f.number == 1 ? &s->values : &s->indices));
        s->has_values = s->has_values || f.number == 1;
        s->has_indices = s->has_indices || f.number == 2;
        if (f.number == 3)
            HEFT_TRY(read_dims(o, &c, &f, dims, &s->rank));
    }
    return c.st;
}

/* Set the layout by the shapes of values, [n], and indices: [n] has positions in row-major order,
 * [n, rank] has coordinates. */
static heft_status check_sparse(heft_onnx *o, sparse *s, heft_str name, uint32_t id)
{
    uint64_t shape[2] = { 0, 1 };
    uint32_t index_rank = (uint32_t)s->indices.rank;
    const heft_onnx_type *type = heft_onnx_type_of(s->values.type);
    if (s->values.rank != 1 || !index_rank || s->indices.rank > 2 || !type || type->per_byte ||
        !type->dtype || s->indices.type != 7)
        return fail(o, &s->values, name,
                    "it is sparse, and its values are not a list of numbers, or its indices are "
                    "not integers of 64 bits");
    HEFT_TRY(fill_dims(o, &s->values, &s->count));
    HEFT_TRY(fill_dims(o, &s->indices, shape));
    if (shape[0] != s->count || shape[1] != (index_rank == 2 ? s->rank : 1))
        return fail(o, &s->values, name, "it is sparse, with other numbers of values and indices");
    /* Coordinates of one dimension are positions; others are stored value by value. */
    return heft_ix_set_layout(o->x, id,
                              heft_lit(s->rank == 1      ? "sparse_coo"
                                       : index_rank == 2 ? "onnx_coordinates"
                                                         : "onnx_positions"));
}

heft_status heft_onnx_add_sparse(heft_onnx *o, heft_range message, heft_str name)
{
    sparse s = { .at = message.offset };
    uint64_t *dims;
    uint32_t id;
    HEFT_TRY(read_sparse(o, message, &s, NULL));
    if (!s.has_values || !s.has_indices || s.rank > UINT16_MAX)
        return heft_error_set(
            o->x->err, HEFT_E_FORMAT, s.at,
            "a sparse tensor has no values or no indices, or too many dimensions");
    name = name.ptr ? name : s.values.name;
    const heft_onnx_type *type = heft_onnx_type_of(s.values.type);
    HEFT_TRY(heft_ix_tensor(o->x, name, type ? type->dtype : HEFT_UNTYPED, (uint32_t)s.rank, &dims,
                            &id));
    HEFT_TRY(read_sparse(o, message, &s, dims));
    HEFT_TRY(check_sparse(o, &s, name, id));
    HEFT_TRY(heft_onnx_add_part(o, &s.values, id, heft_lit("values"), type->dtype, s.count));
    uint64_t indices;
    if (!heft_mul(&indices, s.count, s.indices.rank == 2 ? s.rank : 1))
        indices = UINT64_MAX;
    return heft_onnx_add_part(o, &s.indices, id, heft_lit("coords"), HEFT_I64, indices);
}
