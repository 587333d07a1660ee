/* torch_tensor.c - adds a tensor, a view of a storage, from the arguments of the call that rebuilds
 * the tensor. */
#include "format/torch/torch.h"

/* Arguments of a call that rebuilds a tensor. */
enum { STORAGE, OFFSET, SIZE, STRIDE, QUANTIZER, DTYPE = 6 };

typedef struct view { /* a tensor as a view of a storage */
    heft_str name;    /* name of the tensor */
    heft_torch_storage *s;
    const heft_torch_type *type;
    uint64_t base, bytes; /* range of the storage that is available */
    uint64_t first;       /* index of the first element */
    uint32_t size, stride, rank;
    /* In a tar archive, instead of size and stride: `rank` sizes, then `rank` strides. */
    const uint8_t *sizes;
    uint64_t at;
    uint8_t signs;  /* HEFT_P_SIGNS */
    bool has_pairs; /* a byte holds two elements of a row */
} view;

static const uint8_t no_elements[2 * 8]; /* shape [0] and a stride of 0 */

static heft_status fail(const heft_torch *t, const view *v, heft_status st, const char *what)
{
    return heft_error_set(t->x->err, st, v->at, "tensor %q: %s", v->name, what);
}

heft_status heft_torch_leave_unsupported(const heft_torch *t, heft_status st, uint64_t at)
{
    const heft_error *err = t->x->err;
    if (st != HEFT_E_UNSUPPORTED)
        return st;
    heft_ix_left_out(t->x, HEFT_LEFT_OUT, "torch/unreadable", (heft_range){ at, 0 }, "%s: left out",
                     err ? err->message : "a tensor that is not supported");
    return HEFT_OK;
}

/* Return dimension i, or the stride of dimension i. */
static uint64_t number_at(const heft_torch *t, const view *v, bool is_stride, uint32_t i)
{
    uint64_t n = 0;
    if (v->sizes) {
        const uint8_t *p = v->sizes + 8 * ((size_t)i + (is_stride ? v->rank : 0));
        return t->is_big_endian ? heft_be64(p) : heft_le64(p);
    }
    heft_pickle_u64(&n, &t->p, heft_pickle_item(&t->p, is_stride ? v->stride : v->size, i));
    return v->has_pairs && is_stride == (i + 1 < v->rank) ? n / 2 : n;
}

static heft_status find_storage(const heft_torch *t, view *v, uint32_t arg)
{
    const heft_pickle *p = &t->p;
    if (heft_pickle_is(p, arg, HEFT_PICKLE_OBJECT))
        return fail(t, v, HEFT_E_UNSUPPORTED, "the storage is the result of a call");
    if (!heft_pickle_is(p, arg, HEFT_PICKLE_PERSISTENT))
        return fail(t, v, HEFT_E_FORMAT, "the storage is not a persistent id");
    if (heft_torch_class(p, arg) != arg)
        return fail(t, v, HEFT_E_FORMAT, "a class stands in place of the storage");
    if (!heft_torch_is_storage(p, arg))
        return fail(t, v, HEFT_E_UNSUPPORTED,
                    "the persistent id of the storage does not begin with 'storage'");
    uint32_t id = heft_pickle_at(p, arg)->as.id, key = heft_pickle_item(p, id, 2);
    if (!heft_pickle_is(p, key, HEFT_PICKLE_TEXT))
        return fail(t, v, HEFT_E_FORMAT, "the storage has no key");
    v->s = heft_torch_storage_find(t, heft_pickle_at(p, key)->as.s);
    if (v->s && v->s->is_hidden)
        return fail(t, v, HEFT_E_UNSUPPORTED,
                    "the storage follows one whose elements have an unknown size");
    if (v->s && v->s->is_meta)
        return fail(t, v, HEFT_E_UNSUPPORTED, "the device 'meta' has no bytes");
    if (!v->s || !v->s->is_located)
        return heft_error_set(t->x->err, HEFT_E_FORMAT, v->at,
                              "tensor %q: the storage %q is missing", v->name,
                              heft_pickle_at(p, key)->as.s);
    if (v->s->is_opaque)
        return fail(t, v, HEFT_E_UNSUPPORTED,
                    "the storage is encrypted, or neither stored nor deflated");
    v->type = v->s->type;
    v->bytes = v->s->bytes;
    /* Legacy files append a view, (key, offset, elements), counted in elements of the storage. */
    uint64_t offset, elements, size = heft_dtype_size(v->s->type->type);
    uint32_t meta = heft_pickle_item(p, id, 5);
    if (meta != HEFT_NONE && !heft_pickle_is(p, meta, HEFT_PICKLE_NONE) &&
        (!heft_pickle_u64(&offset, p, heft_pickle_item(p, meta, 1)) ||
         !heft_pickle_u64(&elements, p, heft_pickle_item(p, meta, 2)) ||
         !heft_mul(&v->base, offset, size) || !heft_mul(&v->bytes, elements, size) ||
         !heft_range_in((heft_range){ v->base, v->bytes }, v->s->bytes)))
        return fail(t, v, HEFT_E_FORMAT, "the view extends past the storage");
    return HEFT_OK;
}

/* Before version 0.1.11, rank 0 meant no elements.  PyTorch reads such a tensor as a scalar if the
 * storage has an element. */
static heft_status read_record(heft_torch *t, view *v, uint32_t persistent)
{
    bool is_storage;
    const heft_torch_record *r = heft_torch_record_of(t, persistent, &is_storage);
    if (!r)
        return fail(t, v, HEFT_E_FORMAT, "the archive has no tensor with this number");
    const heft_torch_storage_view *m = r->storage_view == HEFT_NONE
                                           ? NULL
                                           : &t->storage_views[r->storage_view];
    *v = (view){ .name = v->name,
                 .s = m ? &t->storages[m->storage] : &t->no_storage,
                 .at = r->id.at,
                 .first = r->first,
                 .rank = r->rank,
                 .sizes = r->sizes };
    v->type = m ? v->s->type : r->type;
    v->base = m ? m->base : 0;
    v->bytes = m ? m->bytes : 0;
    if (!v->rank && !v->bytes) {
        v->rank = 1;
        v->sizes = no_elements;
        v->first = 0;
    }
    return v->type && v->type->type
               ? HEFT_OK
               : fail(t, v, HEFT_E_UNSUPPORTED, "the class of the tensor is not known");
}

/* Read the bits of a lazy conjugate or negative, a dictionary since PyTorch 2.0. */
static heft_status read_signs(heft_torch *t, view *v, uint32_t dict)
{
    static const struct {
        const char *key;
        uint8_t sign;
    } bits[] = { { "conj", HEFT_P_CONJUGATED }, { "neg", HEFT_P_NEGATED } };
    const heft_pickle *p = &t->p;
    if (dict != HEFT_NONE)
        dict = heft_torch_interpret(t, dict).value;
    if (!heft_pickle_is(p, dict, HEFT_PICKLE_DICT))
        return HEFT_OK;
    HEFT_TRY(heft_torch_charge(t, heft_pickle_at(p, dict)->as.items.count, v->at));
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        uint32_t bit = heft_pickle_dict_get(p, dict, bits[i].key);
        if (heft_pickle_is(p, bit, HEFT_PICKLE_BOOL) && heft_pickle_at(p, bit)->as.b)
            v->signs |= bits[i].sign;
    }
    bool has_sign = v->type->type == HEFT_C64 || v->type->type == HEFT_C128 ||
                    v->type->type == HEFT_F16 || v->type->type == HEFT_BF16 ||
                    v->type->type == HEFT_F32 || v->type->type == HEFT_F64;
    bool is_similar = v->signs && v->type->keeps_name; /* complex32 is read as other numbers */
    return has_sign || !(v->signs & HEFT_P_NEGATED || is_similar)
               ? HEFT_OK
               : fail(t, v, HEFT_E_UNSUPPORTED, "the negative bit of a type without a sign");
}

/* Return true if the elements are contiguous, row-major; false also if the shape exceeds 64
 * bits. */
static bool is_contiguous(const heft_torch *t, const view *v, uint64_t *elements)
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

/* Take bytes with two numbers of 4 bits in place of the numbers, if rows begin at whole bytes. */
static void take_pairs(const heft_torch *t, view *v)
{
    static const heft_torch_type pairs = { "quint4x2", NULL, HEFT_U8, true, 1, true };
    uint64_t elements;
    if (!v->rank || v->first % 2 || number_at(t, v, false, v->rank - 1) % 2 ||
        !is_contiguous(t, v, &elements))
        return;
    v->type = &pairs;
    v->has_pairs = true;
    v->first /= 2;
}

/* Take the element type from the storage or, in a call with a dtype, from the argument. */
static heft_status read_type(const heft_torch *t, view *v, const heft_torch_interpretation *m)
{
    uint32_t dtype = m->form == HEFT_TORCH_TYPED ? heft_pickle_item(&t->p, m->args, DTYPE)
                                                 : HEFT_NONE;
    heft_str name = heft_torch_has_unknown_class(v->s) ? v->s->class : heft_lit(v->type->dtype);
    if (m->form == HEFT_TORCH_QUANTIZED && heft_str_is(name, "quint4x2"))
        take_pairs(t, v);
    bool is_known = v->type->type;
    if (m->form == HEFT_TORCH_TYPED && !heft_pickle_is(&t->p, dtype, HEFT_PICKLE_GLOBAL))
        return fail(t, v, HEFT_E_FORMAT, "the element type is missing");
    if (is_known && dtype != HEFT_NONE) {
        name = heft_pickle_name(&t->p, dtype);
        v->type = heft_torch_type_of_dtype(&t->p, dtype);
        is_known = v->type && v->type->type;
    }
    return is_known ? HEFT_OK
                    : heft_error_set(t->x->err, HEFT_E_UNSUPPORTED, v->at,
                                     "tensor %q: element type %q is not supported", v->name, name);
}

static heft_status read_view(heft_torch *t, view *v, const heft_torch_interpretation *m)
{
    const heft_pickle *p = &t->p;
    uint32_t strides = 0;
    v->at = heft_pickle_offset(p, m->value);
    if (m->form == HEFT_TORCH_RECORDED)
        return read_record(t, v, m->value);
    HEFT_TRY(find_storage(t, v, heft_pickle_item(p, m->args, STORAGE)));
    v->size = heft_pickle_item(p, m->args, SIZE);
    v->stride = heft_pickle_item(p, m->args, STRIDE);
    if (!heft_pickle_u64(&v->first, p, heft_pickle_item(p, m->args, OFFSET)))
        return fail(t, v, HEFT_E_FORMAT, "the offset is not a number");
    if (!heft_torch_sizes(t, &v->size, &v->rank) || !heft_torch_sizes(t, &v->stride, &strides) ||
        strides != v->rank)
        return t->st ? t->st
                     : fail(t, v, HEFT_E_FORMAT,
                            "shape and strides must be lists of non-negative numbers of the same "
                            "length");
    heft_status st = read_type(t, v, m);
    if (st || m->form >= HEFT_TORCH_QUANTIZED)
        return st;
    return read_signs(
        t, v, heft_pickle_item(p, m->args, m->form == HEFT_TORCH_TYPED ? DTYPE + 1 : DTYPE));
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

/* Add (scheme, scale, zero point), or (scheme, scales, zero points, axis) with tensors. */
static heft_status put_quantizer(heft_torch *t, uint32_t tensor, uint32_t params)
{
    static const char *const keys[] = { "torch.qscheme", "torch.scale", "torch.zero_point",
                                        "torch.axis" };
    for (uint32_t i = 0; i < sizeof keys / sizeof *keys; i++)
        HEFT_TRY(put_attr(t, tensor, keys[i], heft_pickle_item(&t->p, params, i)));
    return HEFT_OK;
}

/* ---- parts ---- */

heft_status heft_torch_digest(const heft_torch *t, heft_encoding e, uint32_t crc)
{
    heft_index *x = t->x;
    if (e == HEFT_RAW || !crc)
        return HEFT_OK;
    return heft_ix_digest_crc32(x, x->parts.len - 1, "torch/crc32", crc);
}

static heft_status add_part(heft_torch *t, const view *v, uint32_t id)
{
    enum { ON_STACK = 16 };
    heft_index *x = t->x;
    uint64_t buf[ON_STACK], *strides = buf, first, size = heft_dtype_size(v->type->type);
    if (v->rank > ON_STACK)
        strides = heft_arena_alloc(&x->arena, v->rank * sizeof *strides, 8);
    if (!strides)
        return fail(t, v, HEFT_E_NOMEM, "no memory for the strides");
    for (uint32_t i = 0; i < v->rank; i++)
        strides[i] = number_at(t, v, true, i);
    if (!heft_mul(&first, v->first, size) || first > INT64_MAX)
        return fail(t, v, HEFT_E_FORMAT, "the offset exceeds 63 bits");
    heft_range where = { v->s->offset + v->base, v->bytes };
    heft_encoding e = HEFT_RAW;
    uint64_t content = v->bytes;
    if (v->s->is_deflated) {
        where = (heft_range){ v->s->offset, v->s->stored };
        e = HEFT_DEFLATE;
        content = v->s->bytes;
        first += v->base; /* cannot overflow: base is at most the size of the storage */
    }
    HEFT_TRY(heft_ix_strided(x, id, v->at, where, e, content, first, strides));
    if (t->is_big_endian)
        heft_ix_big_endian(x);
    heft_ix_signs(x, v->signs);
    return heft_torch_digest(t, e, v->s->crc);
}

/* Limit the total size of the tensors: with strides of 0 and shared storages, a few bytes can
 * represent tensors of any size.  The ratio is close to the maximum of a compressed file. */
static heft_status check_total_bytes(heft_torch *t, const view *v, uint64_t bytes)
{
    enum { MAX_RATIO = 1024 };
    static const uint64_t always_allowed = UINT64_C(1) << 30;
    uint64_t limit;
    if (!heft_mul(&limit, t->in->size, MAX_RATIO))
        limit = UINT64_MAX;
    if (!heft_add(&t->bytes, t->bytes, bytes) || (t->bytes > always_allowed && t->bytes > limit))
        return heft_error_set(
            t->x->err, HEFT_E_LIMIT, v->at,
            "tensor %q: with these %U bytes, the tensors are more than %U times as "
            "large as the file",
            v->name, bytes, (uint64_t)MAX_RATIO);
    return HEFT_OK;
}

static heft_status add(heft_torch *t, const view *v, uint32_t *id)
{
    uint64_t *dims, elements, bytes;
    HEFT_TRY(heft_torch_charge(t, v->rank, v->at));
    HEFT_TRY(heft_ix_tensor(t->x, v->name, v->type->type, v->rank, &dims, id));
    for (uint32_t i = 0; i < v->rank; i++)
        dims[i] = number_at(t, v, false, i);
    if (!heft_product(&elements, dims, v->rank) ||
        !heft_dtype_bytes(&bytes, v->type->type, elements))
        return fail(t, v, HEFT_E_FORMAT, "the size of the shape exceeds 64 bits");
    heft_status st = check_total_bytes(t, v, bytes);
    if (!st)
        st = add_part(t, v, *id);
    if (!st)
        st = heft_torch_keep_name(t->x, *id, v->type, v->at);
    if (st)
        return st;
    if (v->s->first_tensor == HEFT_NONE)
        v->s->first_tensor = *id;
    else if (v->s != &t->no_storage)
        heft_ix_note(t->x, HEFT_NOTE, "torch/shared", v->at, *id,
                     "shares the storage of an earlier tensor");
    return HEFT_OK;
}

/* Add the scales or zero points of each channel, if given as a tensor. */
static heft_status add_channel(heft_torch *t, heft_str name, uint32_t arg)
{
    uint32_t id;
    heft_value scalar;
    view v = { .name = name, .at = heft_pickle_offset(&t->p, arg) };
    heft_torch_interpretation m = heft_torch_interpret(t, arg);
    if (heft_torch_scalar(t, &scalar, arg) || t->st)
        return t->st;
    heft_status st = m.kind == HEFT_TORCH_TENSOR && m.form < HEFT_TORCH_QUANTIZED
                         ? read_view(t, &v, &m)
                         : fail(t, &v, HEFT_E_UNSUPPORTED, "neither a number nor a tensor");
    if (!st)
        return add(t, &v, &id);
    return heft_torch_leave_unsupported(t, st, v.at);
}

/* Add NAME.scale and NAME.zero_point. */
static heft_status add_channels(heft_torch *t, heft_str name, uint32_t params)
{
    static const char *const suffixes[] = { NULL, ".scale", ".zero_point" };
    for (uint32_t i = 1; i < sizeof suffixes / sizeof *suffixes; i++) {
        uint32_t arg = heft_pickle_item(&t->p, params, i);
        if (arg == HEFT_NONE)
            continue;
        heft_str joined = heft_arena_join(&t->x->arena, name, heft_lit(suffixes[i]), heft_lit(""));
        HEFT_TRY(joined.ptr ? add_channel(t, joined, arg)
                            : heft_error_no_memory(t->x->err, "for a name"));
    }
    return HEFT_OK;
}

/* List the storage of a tensor of an unknown type as a part of the file, so that its bytes can be
 * read, and count when models are compared. */
static heft_status list_bytes(heft_torch *t, const view *v)
{
    const heft_torch_storage *s = v->s;
    bool is_listed = s && s->is_located && s->stored && !s->is_deflated && !s->is_opaque;
    if (!is_listed || s->first_tensor != HEFT_NONE || t->x->pick.len)
        return HEFT_OK;
    HEFT_TRY(heft_ix_part(t->x, HEFT_NONE, v->name, HEFT_UNTYPED,
                          (heft_range){ s->offset, s->stored }, s->stored, HEFT_RAW));
    heft_ix_part_is_left_out(t->x);
    return HEFT_OK;
}

heft_status heft_torch_tensor(heft_torch *t, heft_str name, const heft_torch_interpretation *m)
{
    uint32_t id, params = heft_pickle_item(&t->p, m->args, QUANTIZER);
    view v = { .name = name };
    heft_status st = read_view(t, &v, m);
    if (st) {
        HEFT_TRY(heft_torch_leave_unsupported(t, st, v.at));
        return list_bytes(t, &v);
    }
    st = add(t, &v, &id);
    if (st || m->form != HEFT_TORCH_QUANTIZED)
        return st;
    st = put_quantizer(t, id, params);
    return st ? st : add_channels(t, name, params);
}

/* Put a number as number_at() reads it. */
static void put_number(const heft_torch *t, uint8_t *to, uint64_t n)
{
    for (uint32_t i = 0; i < 8; i++)
        to[t->is_big_endian ? 7 - i : i] = (uint8_t)(n >> 8 * i);
}

heft_status heft_torch_add_stated(heft_torch *t, heft_str name, const heft_torch_stated *s)
{
    uint32_t id;
    view v = { .name = name, .s = s->storage, .type = s->type, .bytes = s->storage->bytes };
    v.first = s->first;
    v.rank = s->rank;
    v.at = s->at;
    uint8_t *sizes = heft_arena_alloc(&t->x->arena, 2 * 8 * (size_t)s->rank + 1, 1);
    if (!sizes)
        return fail(t, &v, HEFT_E_NOMEM, "no memory for the shape");
    for (uint32_t i = 0; i < s->rank; i++) {
        put_number(t, sizes + 8 * (size_t)i, s->sizes[i]);
        put_number(t, sizes + 8 * ((size_t)s->rank + i), s->strides[i]);
    }
    v.sizes = sizes;
    return add(t, &v, &id);
}

heft_status heft_torch_single(heft_torch *t, heft_torch_stated *out)
{
    heft_torch_interpretation m = heft_torch_interpret(t, t->p.root);
    view v = { .name = heft_lit("tensor"), .at = heft_pickle_offset(&t->p, t->p.root) };
    if (m.kind != HEFT_TORCH_TENSOR || m.form >= HEFT_TORCH_QUANTIZED)
        return fail(t, &v, HEFT_E_UNSUPPORTED, "the file is not a plain tensor");
    HEFT_TRY(read_view(t, &v, &m));
    if (v.signs)
        return fail(t, &v, HEFT_E_UNSUPPORTED, "the tensor is a lazy negative or conjugate");
    *out = (heft_torch_stated){ .storage = v.s, .type = v.type, .at = v.at };
    return HEFT_OK;
}

heft_status heft_torch_contiguous_of(heft_torch *t, heft_str name, uint32_t value,
                                     heft_torch_contiguous *out)
{
    view v = { .name = name };
    uint64_t first, elements;
    heft_torch_interpretation m = heft_torch_interpret(t, value);
    v.at = heft_pickle_offset(&t->p, value);
    if (m.kind != HEFT_TORCH_TENSOR || m.form == HEFT_TORCH_RECORDED)
        return fail(t, &v, HEFT_E_FORMAT, "a part of the sparse tensor is not a tensor");
    if (m.form == HEFT_TORCH_QUANTIZED)
        return fail(t, &v, HEFT_E_UNSUPPORTED, "a part of the sparse tensor is quantized");
    HEFT_TRY(read_view(t, &v, &m));
    if (v.signs)
        return fail(t, &v, HEFT_E_UNSUPPORTED, "a part of the sparse tensor is a lazy negative");
    if (!is_contiguous(t, &v, &elements))
        return fail(t, &v, HEFT_E_UNSUPPORTED, "a part of the sparse tensor is not contiguous");
    uint64_t size = heft_dtype_size(v.type->type);
    *out = (heft_torch_contiguous){ .type = v.type, .size = v.size, .rank = v.rank };
    out->elements = elements;
    if (!heft_mul(&first, v.first, size) || !heft_mul(&out->where.length, elements, size) ||
        !heft_range_in((heft_range){ first, out->where.length }, v.bytes))
        return fail(t, &v, HEFT_E_FORMAT, "a part of the sparse tensor extends past the storage");
    out->where.offset = v.s->offset + v.base + first;
    out->length = out->where.length;
    if (v.s->is_deflated) {
        if (out->length != v.s->bytes)
            return fail(t, &v, HEFT_E_UNSUPPORTED,
                        "a part of the sparse tensor is only a range of a deflated storage");
        out->where = (heft_range){ v.s->offset, v.s->stored };
        out->encoding = HEFT_DEFLATE;
        out->crc = v.s->crc;
    }
    out->storage = v.s;
    return check_total_bytes(t, &v, out->length);
}
