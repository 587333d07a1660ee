/* torch_write_pickle.c - emits data.pkl, a dictionary from names to tensors, in the form of
 * torch.save() with protocol 2:
 *
 *   {NAME: torch._utils._rebuild_tensor_v2(STORAGE, 0, shape, strides, False, OrderedDict()), ...}
 *
 *   STORAGE is a persistent id: ("storage", class, key, "cpu", elements).  A type without a class
 *   has a storage of bytes, and _rebuild_tensor_v3, whose last argument is the type.
 *
 * The dictionary may have one more entry, a dictionary of settings. */
#include "format/torch/torch_write.h"
#include "grammar/pickle_write.h"
#include "model/values.h"

static const char utils[] = "torch._utils", torch_module[] = "torch";
static const char tensor_v2[] = "_rebuild_tensor_v2", tensor_v3[] = "_rebuild_tensor_v3";
static const char quantized[] = "_rebuild_qtensor", sparse_tensor[] = "_rebuild_sparse_tensor";
static const char get_layout[] = "_get_layout";
static const char ordered_dict[] = "OrderedDict", affine[] = "per_tensor_affine";
static const char storage_word[] = "storage", cpu[] = "cpu", untyped[] = "UntypedStorage";
static const char size_class[] = "Size";

typedef struct pickler {
    heft_pickle_writer w;
    const heft_plan *p;
    const heft_index *x;
} pickler;

/* ---- tensors ---- */

typedef struct storage {
    uint32_t number; /* its key */
    uint64_t bytes;
} storage;

static void put_storage(pickler *k, storage s, const heft_torch_type *type)
{
    enum { FIELDS = 5 };
    char digits[20];
    uint32_t size = heft_dtype_size(type->type);
    heft_pickle_tuple_mark(&k->w, FIELDS);
    heft_pickle_write_shared(&k->w, storage_word);
    if (type->storage)
        heft_pickle_write_global(&k->w, torch_module, type->storage);
    else
        heft_pickle_write_global(&k->w, "torch.storage", untyped);
    heft_str key = { digits, heft_u64_text(digits, s.number) };
    heft_pickle_write_text(&k->w, key);
    heft_pickle_write_shared(&k->w, cpu);
    heft_pickle_write_u64(&k->w, type->storage ? heft_div(s.bytes, size) : s.bytes);
    heft_pickle_tuple(&k->w, FIELDS);
    heft_pickle_op(&k->w, HEFT_OP_PERSISTENT);
}

static void put_shape(const pickler *k, const uint64_t *dims, uint32_t rank)
{
    heft_pickle_tuple_mark(&k->w, rank);
    for (uint32_t i = 0; i < rank; i++)
        heft_pickle_write_u64(&k->w, dims[i]);
    heft_pickle_tuple(&k->w, rank);
}

/* Emit row-major strides, in elements.  Like PyTorch, count an empty dimension as 1. */
static void put_strides(const pickler *k, const uint64_t *dims, uint32_t rank)
{
    uint64_t step = 1;
    for (uint32_t i = 0; i < rank; i++)
        step *= dims[i] ? dims[i] : 1; /* plan_shape() has refused shapes that overflow */
    heft_pickle_tuple_mark(&k->w, rank);
    for (uint32_t i = 0; i < rank; i++) {
        step = heft_div(step, dims[i] ? dims[i] : 1);
        heft_pickle_write_u64(&k->w, step);
    }
    heft_pickle_tuple(&k->w, rank);
}

static void put_quantizer(pickler *k, const heft_torch_rebuild *r)
{
    heft_pickle_write_global(&k->w, torch_module, affine);
    heft_pickle_write_f64(&k->w, r->scale.as.f);
    heft_pickle_write_i64(&k->w, r->zero_point.as.i);
    heft_pickle_tuple(&k->w, 3);
}

/* Emit a dense tensor: all of the elements of a storage. */
static void put_view(pickler *k, storage s, const heft_torch_rebuild *r, const uint64_t *dims,
                     uint32_t rank)
{
    enum { PLAIN_FIELDS = 6 };
    static const char *const functions[] = { tensor_v2, tensor_v3, quantized };
    heft_pickle_write_global(&k->w, utils, functions[r->form]);
    heft_pickle_op(&k->w, HEFT_OP_MARK);
    put_storage(k, s, r->type);
    heft_pickle_write_u64(&k->w, 0);
    put_shape(k, dims, rank);
    put_strides(k, dims, rank);
    if (r->form == HEFT_TORCH_QUANTIZED)
        put_quantizer(k, r);
    heft_pickle_write_bool(&k->w, false); /* requires_grad */
    heft_pickle_write_global(&k->w, "collections", ordered_dict);
    heft_pickle_tuple(&k->w, 0);
    heft_pickle_op(&k->w, HEFT_OP_CALL);
    if (r->form == HEFT_TORCH_TYPED)
        heft_pickle_write_global(&k->w, torch_module, r->type->dtype);
    heft_pickle_op(&k->w, HEFT_OP_TUPLE);
    heft_pickle_op(&k->w, HEFT_OP_CALL);
}

static void put_dense(pickler *k, uint32_t part, const heft_torch_rebuild *r, const uint64_t *dims,
                      uint32_t rank)
{
    const heft_torch_plan *t = k->p->priv;
    storage s = { t->storage_of[part], heft_ix_part_row_at(k->x, part)->length };
    put_view(k, s, r, dims, rank);
}

/* Emit a part of a sparse tensor.  The first of two parts is a matrix, with a row for each
 * dimension of the tensor. */
static void put_sparse_part(pickler *k, const heft_torch_layout *l, uint32_t t, uint32_t i)
{
    uint32_t part = heft_ix_part_find(k->x, t, heft_lit(l->roles[i]));
    const heft_ix_part_row *row = heft_ix_part_row_at(k->x, part);
    uint32_t rank = heft_ix_row(k->x, t)->rank;
    heft_torch_rebuild r = i == l->values ? heft_torch_rebuild_of(k->x, t)
                                          : heft_torch_rebuild_as(row->dtype);
    uint64_t elements = heft_div(row->length, heft_dtype_size(row->dtype));
    bool is_matrix = l->values == 1 && !i;
    uint64_t matrix[] = { rank, rank ? heft_div(elements, rank) : 0 };
    put_dense(k, part, &r, is_matrix ? matrix : &elements, is_matrix ? 2 : 1);
}

/* Emit (layout, (parts, shape)). */
static void put_sparse(pickler *k, uint32_t t)
{
    const heft_torch_layout *l = heft_torch_layout_of(k->x, t);
    heft_pickle_write_global(&k->w, utils, sparse_tensor);
    heft_pickle_write_global(&k->w, "torch.serialization", get_layout);
    heft_pickle_write_shared(&k->w, l->name);
    heft_pickle_tuple(&k->w, 1);
    heft_pickle_op(&k->w, HEFT_OP_CALL);
    heft_pickle_tuple_mark(&k->w, l->parts + 1);
    for (uint32_t i = 0; i < l->parts; i++)
        put_sparse_part(k, l, t, i);
    heft_pickle_write_global(&k->w, torch_module, size_class);
    put_shape(k, heft_ix_dims(k->x, t), heft_ix_row(k->x, t)->rank);
    heft_pickle_tuple(&k->w, 1);
    heft_pickle_op(&k->w, HEFT_OP_CALL);
    heft_pickle_tuple(&k->w, l->parts + 1);
    heft_pickle_tuple(&k->w, 2);
    heft_pickle_op(&k->w, HEFT_OP_CALL);
}

/* ---- settings ---- */

static void put_number(const pickler *k, const heft_value *v)
{
    if (v->kind == HEFT_KIND_BOOL)
        heft_pickle_write_bool(&k->w, v->as.b);
    else if (v->kind == HEFT_KIND_INT)
        heft_pickle_write_i64(&k->w, v->as.i);
    else if (v->kind == HEFT_KIND_UINT)
        heft_pickle_write_u64(&k->w, v->as.u);
    else
        heft_pickle_write_f64(&k->w, v->as.f);
}

static void put_array(const pickler *k, const heft_value *v)
{
    heft_pickle_op(&k->w, HEFT_OP_EMPTY_LIST);
    heft_pickle_op(&k->w, HEFT_OP_MARK);
    for (uint32_t i = 0; i < v->as.array.count; i++) {
        heft_value number = heft_value_element(v, i);
        put_number(k, &number);
    }
    heft_pickle_op(&k->w, HEFT_OP_APPENDS);
}

static void put_scalar(pickler *k, const heft_value *v)
{
    switch (v->kind) {
    case HEFT_KIND_BOOL:
    case HEFT_KIND_INT:
    case HEFT_KIND_UINT:
    case HEFT_KIND_FLOAT:
        put_number(k, v);
        break;
    case HEFT_KIND_STR:
    case HEFT_KIND_BYTES:
    case HEFT_KIND_ID128:
        if (v->kind == HEFT_KIND_STR && heft_str_is_utf8(v->as.s))
            heft_pickle_write_text(&k->w, v->as.s);
        else
            heft_pickle_write_bytes(&k->w, v->as.s);
        break;
    case HEFT_KIND_ARRAY:
        put_array(k, v);
        break;
    default:
        heft_pickle_op(&k->w, HEFT_OP_NONE);
    }
}

static bool is_container(const heft_value *v)
{
    return v->kind == HEFT_KIND_LIST || v->kind == HEFT_KIND_MAP;
}

/* Emit the settings.  `ends` has the number of the value after each open container: containers of
 * the index are nested no deeper than HEFT_MAX_DEPTH. */
static void put_settings(pickler *k)
{
    uint32_t ends[HEFT_MAX_DEPTH + 1], depth = 0;
    uint8_t closes[HEFT_MAX_DEPTH + 1] = { HEFT_OP_SET_ITEMS };
    ends[0] = k->x->values.len;
    heft_pickle_write_text(&k->w, heft_lit(heft_torch_metadata));
    heft_pickle_op(&k->w, HEFT_OP_EMPTY_DICT);
    heft_pickle_op(&k->w, HEFT_OP_MARK);
    for (uint32_t i = 0;; i++) {
        while (i == ends[depth]) {
            heft_pickle_op(&k->w, (char)closes[depth]);
            if (!depth--)
                return;
        }
        const heft_value *v = heft_ix_value(k->x, i);
        if (closes[depth] == HEFT_OP_SET_ITEMS)
            heft_pickle_write_text(&k->w, v->key);
        if (!is_container(v)) {
            put_scalar(k, v);
            continue;
        }
        bool is_list = v->kind == HEFT_KIND_LIST;
        heft_pickle_op(&k->w, is_list ? HEFT_OP_EMPTY_LIST : HEFT_OP_EMPTY_DICT);
        heft_pickle_op(&k->w, HEFT_OP_MARK);
        ends[++depth] = v->as.container.end;
        closes[depth] = is_list ? HEFT_OP_APPENDS : HEFT_OP_SET_ITEMS;
    }
}

/* ---- the dictionary ---- */

static void put_tensor(pickler *k, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(k->x, t);
    heft_torch_rebuild r = heft_torch_rebuild_of(k->x, t);
    heft_pickle_write_text(&k->w, heft_ix_name(k->x, t));
    if (row->layout != HEFT_DENSE)
        put_sparse(k, t);
    else
        put_dense(k, row->first_part, &r, heft_ix_dims(k->x, t), row->rank);
}

void heft_torch_put_pickle(const heft_plan *p, heft_out *o)
{
    const heft_torch_plan *plan = p->priv;
    pickler k = { .w = { .o = o }, .p = p, .x = p->x };
    heft_pickle_write_begin(&k.w);
    heft_pickle_op(&k.w, HEFT_OP_EMPTY_DICT);
    heft_pickle_op(&k.w, HEFT_OP_MARK);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++) {
        if (t && t % HEFT_PICKLE_BATCH == 0) { /* a reader's stack stays small */
            heft_pickle_op(&k.w, HEFT_OP_SET_ITEMS);
            heft_pickle_op(&k.w, HEFT_OP_MARK);
        }
        put_tensor(&k, t);
    }
    if (plan->has_metadata)
        put_settings(&k);
    heft_pickle_op(&k.w, HEFT_OP_SET_ITEMS);
    heft_pickle_op(&k.w, HEFT_OP_STOP);
}

void heft_torch_put_tensor(heft_out *o, const heft_torch_rebuild *r, uint64_t bytes,
                           const uint64_t *dims, uint32_t rank)
{
    pickler k = { .w = { .o = o } };
    heft_pickle_write_begin(&k.w);
    put_view(&k, (storage){ 0, bytes }, r, dims, rank);
    heft_pickle_op(&k.w, HEFT_OP_STOP);
}
