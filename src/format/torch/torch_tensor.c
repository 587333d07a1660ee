/* torch_tensor.c - a tensor from the arguments of the call that rebuilds it: a view of a storage. */
#include "format/torch/torch.h"

typedef struct view { /* of a storage, as elements of the tensor's type */
    heft_str name;    /* of the tensor */
    heft_torch_storage *s;
    const heft_torch_type *type;
    uint64_t base, room; /* bytes of the storage that it is a view of */
    uint64_t first;      /* element */
    uint32_t size, stride, rank;
    /* Instead of size and stride: rank numbers each, as a tar archive has them. */
    const uint8_t *sizes;
    uint64_t at;
} view;

static const uint8_t no_elements[2 * 8]; /* one dimension of none, and its stride */

static heft_status fail(const heft_torch *t, const view *v, heft_status st, const char *what)
{
    return heft_error_set(t->x->err, st, v->at, "tensor %q: %s", v->name, what);
}

/* Dimension i of the view, or its stride. */
static uint64_t number_at(const heft_torch *t, const view *v, bool is_stride, uint32_t i)
{
    uint64_t n = 0;
    if (v->sizes) {
        const uint8_t *p = v->sizes + 8 * ((size_t)i + (is_stride ? v->rank : 0));
        return t->is_big_endian ? heft_be64(p) : heft_le64(p);
    }
    heft_pickle_u64(&n, &t->p, heft_pickle_item(&t->p, is_stride ? v->stride : v->size, i));
    return n;
}

static heft_status find_storage(const heft_torch *t, view *v, uint32_t arg)
{
    const heft_pickle *p = &t->p;
    if (!heft_pickle_is(p, arg, HEFT_PICKLE_PERSISTENT))
        return fail(t, v, HEFT_E_FORMAT, "its storage is no persistent id");
    uint32_t id = heft_pickle_at(p, arg)->as.id, key = heft_pickle_item(p, id, 2);
    if (!heft_pickle_is(p, key, HEFT_PICKLE_TEXT))
        return fail(t, v, HEFT_E_FORMAT, "its storage has no key");
    v->s = heft_torch_storage_find(t, heft_pickle_at(p, key)->as.s);
    if (!v->s || !v->s->is_placed)
        return heft_error_set(t->x->err, HEFT_E_FORMAT, v->at,
                              "tensor %q: its storage, %q, is not in the file", v->name,
                              heft_pickle_at(p, key)->as.s);
    v->type = v->s->type;
    v->room = v->s->bytes;
    /* Legacy files have (key, offset, elements) of a storage's view here, in elements of the storage. */
    uint64_t offset, elements, size = heft_dtype_size(v->s->type->type);
    uint32_t meta = heft_pickle_item(p, id, 5);
    if (meta != HEFT_NONE && !heft_pickle_is(p, meta, HEFT_PICKLE_NONE) &&
        (!heft_pickle_u64(&offset, p, heft_pickle_item(p, meta, 1)) ||
         !heft_pickle_u64(&elements, p, heft_pickle_item(p, meta, 2)) ||
         !heft_mul(&v->base, offset, size) || !heft_mul(&v->room, elements, size) ||
         !heft_range_in((heft_range){ v->base, v->room }, v->s->bytes)))
        return fail(t, v, HEFT_E_FORMAT, "the view of its storage reaches past the storage");
    return HEFT_OK;
}

/* A tuple of numbers, or a torch.Size of one. */
static bool read_sizes(const heft_torch *t, uint32_t *tuple, uint32_t *count)
{
    const heft_pickle *p = &t->p;
    uint64_t n;
    if (*tuple == HEFT_NONE)
        return false;
    *tuple = heft_torch_meaning_of(t, *tuple).value;
    if (!heft_pickle_is(p, *tuple, HEFT_PICKLE_TUPLE))
        return false;
    *count = heft_pickle_at(p, *tuple)->as.items.count;
    for (uint32_t i = 0; i < *count; i++)
        if (!heft_pickle_u64(&n, p, heft_pickle_item(p, *tuple, i)))
            return false;
    return true;
}

/* Tensors had no rank 0 then, only no elements: PyTorch makes a scalar of such a one if its storage has an element. */
static heft_status read_record(heft_torch *t, view *v, uint32_t persistent)
{
    bool is_storage;
    const heft_torch_record *r = heft_torch_record_of(t, persistent, &is_storage);
    if (!r)
        return fail(t, v, HEFT_E_FORMAT, "the archive has no tensor of its number");
    const heft_torch_memory *m = r->memory == HEFT_NONE ? NULL : &t->memories[r->memory];
    *v = (view){ .name = v->name,
                 .s = m ? &t->storages[m->storage] : &t->nothing,
                 .at = r->id.at,
                 .first = r->first,
                 .rank = r->rank,
                 .sizes = r->sizes };
    v->type = m ? v->s->type : r->type;
    v->base = m ? m->base : 0;
    v->room = m ? m->bytes : 0;
    if (!v->rank && !v->room) {
        v->rank = 1;
        v->sizes = no_elements;
        v->first = 0;
    }
    return HEFT_OK;
}

static heft_status read_view(heft_torch *t, view *v, const heft_torch_meaning *m)
{
    enum { STORAGE, OFFSET, SIZE, STRIDE, DTYPE = 6 };
    const heft_pickle *p = &t->p;
    uint32_t strides = 0;
    v->at = heft_pickle_offset(p, m->value);
    if (m->form == HEFT_TORCH_RECORDED)
        return read_record(t, v, m->value);
    heft_status st = find_storage(t, v, heft_pickle_item(p, m->args, STORAGE));
    if (st)
        return st;
    v->size = heft_pickle_item(p, m->args, SIZE);
    v->stride = heft_pickle_item(p, m->args, STRIDE);
    if (!heft_pickle_u64(&v->first, p, heft_pickle_item(p, m->args, OFFSET)))
        return fail(t, v, HEFT_E_FORMAT, "its offset is no number");
    if (!read_sizes(t, &v->size, &v->rank) || !read_sizes(t, &v->stride, &strides) ||
        strides != v->rank)
        return fail(t, v, HEFT_E_FORMAT,
                    "its shape and its strides are not as many numbers, none below 0");
    if (m->form == HEFT_TORCH_TYPED)
        v->type = heft_torch_type_of_dtype(p, heft_pickle_item(p, m->args, DTYPE));
    if (!v->type || !v->type->type)
        return heft_error_set(t->x->err, HEFT_E_UNSUPPORTED, v->at,
                              "tensor %q: elements of type %s are not read", v->name,
                              v->type ? v->type->dtype : "unknown");
    return HEFT_OK;
}

/* ---- attributes ---- */

static heft_status put_attr(heft_torch *t, uint32_t tensor, const char *key, uint32_t value)
{
    heft_value v;
    if (value == HEFT_NONE || !heft_torch_scalar(t, &v, value))
        return t->st;
    v.key = heft_lit(key);
    return heft_ix_attr(t->x, tensor, v);
}

/* (scheme, scale, zero point), or (scheme, scales, zero points, axis) with tensors. */
static heft_status put_quantizer(heft_torch *t, uint32_t tensor, uint32_t params)
{
    static const char *const keys[] = { "torch.qscheme", "torch.scale", "torch.zero_point",
                                        "torch.axis" };
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; !st && i < sizeof keys / sizeof *keys; i++)
        st = put_attr(t, tensor, keys[i], heft_pickle_item(&t->p, params, i));
    return st;
}

/* ---- placing ---- */

heft_status heft_torch_digest(const heft_torch *t, heft_encoding e, uint32_t crc)
{
    heft_index *x = t->x;
    if (e == HEFT_RAW || !crc)
        return HEFT_OK;
    return heft_ix_digest_crc32(x, x->parts.len - 1, "torch/crc32", crc);
}

static heft_status place(heft_torch *t, const view *v, uint32_t id)
{
    enum { FEW = 16 };
    heft_index *x = t->x;
    uint64_t few[FEW], *strides = few, first, size = heft_dtype_size(v->type->type);
    if (v->rank > FEW)
        strides = heft_arena_alloc(&x->arena, v->rank * sizeof *strides, 8);
    if (!strides)
        return fail(t, v, HEFT_E_NOMEM, "no memory for its strides");
    for (uint32_t i = 0; i < v->rank; i++)
        strides[i] = number_at(t, v, true, i);
    if (!heft_mul(&first, v->first, size) || first > INT64_MAX)
        return fail(t, v, HEFT_E_FORMAT, "its offset passes 63 bits");
    heft_range where = { v->s->offset + v->base, v->room };
    heft_encoding e = HEFT_RAW;
    uint64_t content = v->room;
    if (v->s->is_deflated) {
        where = (heft_range){ v->s->offset, v->s->stored };
        e = HEFT_DEFLATE;
        content = v->s->bytes;
        first += v->base; /* at most the storage's size: no overflow */
    }
    heft_status st = heft_ix_strided(x, id, v->at, where, e, content, first, strides);
    if (!st && t->is_big_endian)
        heft_ix_big_endian(x);
    return st ? st : heft_torch_digest(t, e, v->s->crc);
}

/* Strides of 0, and storages that are shared, make tensors of any size of a few bytes.  What is listed is to be
 * read at some time, so there is a limit to what a file makes of itself, about that of a compressed one. */
static heft_status weigh(heft_torch *t, const view *v, uint64_t bytes)
{
    enum { TIMES = 1024 };
    static const uint64_t any = UINT64_C(1) << 30;
    uint64_t most;
    if (!heft_mul(&most, t->in->size, TIMES))
        most = UINT64_MAX;
    if (!heft_add(&t->bytes, t->bytes, bytes) || (t->bytes > any && t->bytes > most))
        return heft_error_set(t->x->err, HEFT_E_LIMIT, v->at,
                              "tensor %q: its %U bytes and those before it are more than %U times "
                              "the file's",
                              v->name, bytes, (uint64_t)TIMES);
    return HEFT_OK;
}

static heft_status add(heft_torch *t, const view *v, uint32_t *id)
{
    uint64_t *dims, elements, bytes;
    heft_status st = heft_torch_charge(t, v->rank, v->at);
    if (!st)
        st = heft_ix_tensor(t->x, v->name, v->type->type, v->rank, &dims, id);
    if (st)
        return st;
    for (uint32_t i = 0; i < v->rank; i++)
        dims[i] = number_at(t, v, false, i);
    if (!heft_product(&elements, dims, v->rank) ||
        !heft_dtype_bytes(&bytes, v->type->type, elements))
        return fail(t, v, HEFT_E_FORMAT, "its shape passes 64 bits");
    st = weigh(t, v, bytes);
    if (!st)
        st = place(t, v, *id);
    heft_value type = { .kind = HEFT_KIND_STR, .key = heft_lit("stored_dtype") };
    type.as.s = heft_lit(v->type->dtype);
    if (!st && v->type->is_other)
        st = heft_ix_attr(t->x, *id, type);
    if (st)
        return st;
    if (v->s->first_tensor == HEFT_NONE)
        v->s->first_tensor = *id;
    else if (v->s != &t->nothing)
        heft_ix_note(t->x, HEFT_NOTE, "torch/shared", v->at, *id,
                     "it shares its storage with a tensor before it");
    return HEFT_OK;
}

/* Scales and zero points for each channel are tensors: NAME.scale and NAME.zero_point. */
static heft_status add_channels(heft_torch *t, heft_str name, uint32_t params)
{
    static const char *const ends[] = { NULL, ".scale", ".zero_point" };
    for (uint32_t i = 1; i < sizeof ends / sizeof *ends; i++) {
        uint32_t arg = heft_pickle_item(&t->p, params, i), id;
        heft_torch_meaning m = { .kind = HEFT_TORCH_VALUE };
        if (arg != HEFT_NONE)
            m = heft_torch_meaning_of(t, arg);
        if (m.kind != HEFT_TORCH_TENSOR || m.form >= HEFT_TORCH_QUANTIZED)
            continue;
        view v = { .name = heft_arena_join(&t->x->arena, name, heft_lit(ends[i]), heft_lit("")) };
        if (!v.name.ptr)
            return heft_error_no_memory(t->x->err, "for a name");
        heft_status st = read_view(t, &v, &m);
        if (!st)
            st = add(t, &v, &id);
        if (st)
            return st;
    }
    return HEFT_OK;
}

heft_status heft_torch_tensor(heft_torch *t, heft_str name, const heft_torch_meaning *m)
{
    enum { QUANTIZER = 4 };
    uint32_t id, params = heft_pickle_item(&t->p, m->args, QUANTIZER);
    view v = { .name = name };
    heft_status st = read_view(t, &v, m);
    if (!st)
        st = add(t, &v, &id);
    if (st || m->form != HEFT_TORCH_QUANTIZED)
        return st;
    st = put_quantizer(t, id, params);
    return st ? st : add_channels(t, name, params);
}

/* Elements of a view that lie in order; false: they do not, or the shape passes 64 bits. */
static bool in_order(const heft_torch *t, const view *v, uint64_t *elements)
{
    *elements = 1;
    for (uint32_t i = v->rank; i--;) {
        uint64_t dim = number_at(t, v, false, i);
        if ((dim > 1 && number_at(t, v, true, i) != *elements) ||
            !heft_mul(elements, *elements, dim))
            return false;
        if (!dim)
            return true;
    }
    return true;
}

heft_status heft_torch_flat_of(heft_torch *t, heft_str name, uint32_t value, heft_torch_flat *out)
{
    view v = { .name = name };
    uint64_t first, elements;
    heft_torch_meaning m = heft_torch_meaning_of(t, value);
    v.at = heft_pickle_offset(&t->p, value);
    if (m.kind != HEFT_TORCH_TENSOR || m.form >= HEFT_TORCH_QUANTIZED)
        return fail(t, &v, HEFT_E_FORMAT, "a part of it is no tensor");
    heft_status st = read_view(t, &v, &m);
    if (st)
        return st;
    if (!in_order(t, &v, &elements))
        return fail(t, &v, HEFT_E_UNSUPPORTED, "a part of it is not in order");
    uint64_t size = heft_dtype_size(v.type->type);
    *out = (heft_torch_flat){ .type = v.type->type, .size = v.size, .rank = v.rank };
    out->elements = elements;
    if (!heft_mul(&first, v.first, size) || !heft_mul(&out->where.length, elements, size) ||
        !heft_range_in((heft_range){ first, out->where.length }, v.room))
        return fail(t, &v, HEFT_E_FORMAT, "a part of it reaches past its storage");
    out->where.offset = v.s->offset + v.base + first;
    out->length = out->where.length;
    if (v.s->is_deflated) {
        if (out->length != v.s->bytes)
            return fail(t, &v, HEFT_E_UNSUPPORTED, "a part of it is a piece of a deflated storage");
        out->where = (heft_range){ v.s->offset, v.s->stored };
        out->encoding = HEFT_DEFLATE;
        out->crc = v.s->crc;
    }
    v.s->first_tensor = heft_ix_tensors(t->x);
    return weigh(t, &v, out->length);
}
