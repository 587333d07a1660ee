/* onnx_constant.c - reads the value of a Constant, an attribute: a tensor, a sparse tensor, or
 * numbers. */
#include "format/onnx/onnx.h"

enum { FLOAT = 2, INT = 3, TEXT = 4, TENSOR = 5, FLOATS = 7, INTS = 8, TEXTS = 9, SPARSE = 22 };
enum { TYPE_FLOAT = 1, TYPE_INT64 = 7, TYPE_STRING = 8 };

static const char what[] = "the value of a Constant";

/* Count the numbers of a record. */
static heft_status count_numbers(heft_onnx *o, heft_cur *c, const heft_protobuf_field *f,
                                 uint64_t *count)
{
    if (f->wire != HEFT_WIRE_BYTES)
        ++*count;
    else if (f->number == FLOATS)
        *count += f->bytes.length / sizeof(float);
    else {
        heft_cur list = heft_protobuf_open(o->in, f->bytes, what);
        for (; heft_cur_left(&list) && !list.st; ++*count)
            heft_protobuf_varint(&list);
        c->st = list.st;
    }
    return c->st;
}

/* Note the records of a number or list of numbers. */
static void take(const heft_cur *c, const heft_protobuf_field *f, heft_onnx_tensor *t)
{
    bool is_fixed = f->number == FLOAT || f->number == FLOATS;
    if (!t->data_field)
        t->data.offset = f->at;
    t->is_one_record = !t->data_field && is_fixed &&
                       (f->wire == HEFT_WIRE_BYTES || f->wire == HEFT_WIRE_32);
    t->packed = f->bytes;
    t->data.length = heft_cur_pos(c) - t->data.offset;
    t->data_field = f->number;
    t->type = is_fixed                                ? TYPE_FLOAT
              : f->number == INT || f->number == INTS ? TYPE_INT64
                                                      : TYPE_STRING;
}

static heft_status add_numbers(heft_onnx *o, const heft_onnx_tensor *t, heft_str name,
                               uint64_t count)
{
    uint64_t *dims;
    uint32_t id;
    bool is_list = t->data_field == FLOATS || t->data_field == INTS;
    heft_dtype type = heft_onnx_type_of(t->type)->dtype;
    if (!type)
        return heft_onnx_leave_out(o, t, name);
    HEFT_TRY(heft_ix_tensor(o->x, name, type, is_list, &dims, &id));
    if (is_list)
        dims[0] = count;
    return heft_onnx_add_part(o, t, id, heft_ix_data, type, is_list ? count : 1);
}

heft_status heft_onnx_add_constant(heft_onnx *o, heft_range attribute, heft_str name)
{
    heft_onnx_tensor t = { .message = attribute, .name = name, .is_attribute = true }, inner;
    uint64_t count = 0;
    heft_cur c = heft_protobuf_open(o->in, attribute, what);
    for (heft_protobuf_field f; heft_protobuf_next(&c, &f);)
        switch (f.number) {
        case TENSOR:
            HEFT_TRY(heft_onnx_read_tensor(o, f.bytes, &inner));
            return heft_onnx_add_tensor(o, &inner, name);
        case SPARSE:
            return heft_onnx_add_sparse(o, f.bytes, name);
        case FLOATS:
        case INTS:
            HEFT_TRY(count_numbers(o, &c, &f, &count));
            take(&c, &f, &t);
            break;
        case FLOAT:
        case INT:
        case TEXT:
        case TEXTS:
            take(&c, &f, &t);
            break;
        default:
            break;
        }
    return c.st || !t.data_field ? c.st : add_numbers(o, &t, name, count);
}
