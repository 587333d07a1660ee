/* torch_sparse.c - reads tensors that consist of several: sparse tensors, (layout, data), where
 * data is (coords, values, shape, ...) or (pointers, indices, values, shape), and nested tensors,
 * (values, sizes, strides, offsets).  The parts must be contiguous. */
#include "format/torch/torch.h"

enum {
    MAX_PARTS = HEFT_TORCH_SPARSE_PARTS,
    LAYOUTS = HEFT_TORCH_LAYOUTS,
    NESTED = LAYOUTS - 1,
    COMPRESSED = 3 /* parts of a layout with pointers */
};

const heft_torch_layout heft_torch_layouts[LAYOUTS] = {
    { "torch.sparse_coo", "sparse_coo", { "coords", "values" }, 2, 1, 0, false },
    { "torch.sparse_csr", "sparse_csr", { "indptr", "indices", "values" }, 3, 2, 0, false },
    { "torch.sparse_csc", "sparse_csc", { "indptr", "indices", "values" }, 3, 2, 1, false },
    { "torch.sparse_bsr", "sparse_bsr", { "indptr", "indices", "values" }, 3, 2, 0, true },
    { "torch.sparse_bsc", "sparse_bsc", { "indptr", "indices", "values" }, 3, 2, 1, true },
    { "", "nested", { "values", "sizes", "strides", "offsets" }, 4, 0, 0, false },
};

typedef struct sparse {
    heft_str name;
    uint64_t at;
    uint32_t layout;         /* index in the table */
    uint32_t rank, size, id; /* size: the shape, a TUPLE of the pickle */
    heft_torch_contiguous parts[MAX_PARTS];
} sparse;

static heft_status fail(const heft_torch *t, const sparse *s, heft_status st, const char *what)
{
    return heft_error_set(t->x->err, st, s->at, "tensor %q: %s", s->name, what);
}

/* Interpret a call: torch.serialization._get_layout("torch.sparse_coo"); LAYOUTS if the layout is
 * unknown. */
static uint32_t layout_of(const heft_pickle *p, uint32_t value)
{
    uint32_t n = 0;
    uint32_t text = heft_pickle_item(p, heft_pickle_at(p, value)->as.object.args, 0);
    if (!heft_pickle_is(p, text, HEFT_PICKLE_TEXT))
        return LAYOUTS;
    while (n < NESTED && !heft_str_is(heft_pickle_at(p, text)->as.s, heft_torch_layouts[n].name))
        n++;
    return n < NESTED ? n : LAYOUTS;
}

static uint64_t dim(const heft_pickle *p, uint32_t size, uint32_t i)
{
    uint64_t n = 0;
    heft_pickle_u64(&n, p, heft_pickle_item(p, size, i));
    return n;
}

/* Check pointers, indices and values of a matrix, which may have blocks as values. */
static bool fits_compressed(const heft_pickle *p, const sparse *s, const heft_torch_layout *l)
{
    const heft_torch_contiguous *pointers = &s->parts[0], *indices = &s->parts[1],
                                *values = &s->parts[2];
    uint64_t block = l->has_blocks ? dim(p, values->size, 1 + l->compressed) : 1;
    uint64_t size = dim(p, s->size, l->compressed), lines = block ? heft_div(size, block) : 0;
    return s->rank == 2 && pointers->rank == 1 && indices->rank == 1 && pointers->elements &&
           block && lines * block == size && pointers->elements - 1 == lines &&
           indices->elements == dim(p, values->size, 0);
}

/* Check the shapes of the parts against each other; heft_file_verify() checks the values. */
static heft_status check_counts(const heft_torch *t, const sparse *s)
{
    const heft_pickle *p = &t->p;
    const heft_torch_layout *l = &heft_torch_layouts[s->layout];
    const heft_torch_contiguous *first = &s->parts[0], *values = &s->parts[l->values];
    enum { BLOCK_RANK = 3 };
    if (values->rank != (l->has_blocks ? BLOCK_RANK : 1))
        return fail(t, s, HEFT_E_UNSUPPORTED,
                    l->has_blocks ? "values that are not blocks of two dimensions are not supported"
                                  : "sparse tensors with dense blocks as values are not supported");
    bool fits = l->parts == COMPRESSED ? fits_compressed(p, s, l)
                                       : first->rank == 2 && dim(p, first->size, 0) == s->rank &&
                                             dim(p, first->size, 1) == values->elements;
    return fits ? HEFT_OK
                : fail(t, s, HEFT_E_FORMAT,
                       "the parts of the sparse tensor have inconsistent shapes");
}

static heft_status take_parts(heft_torch *t, sparse *s, uint32_t data)
{
    for (uint32_t i = 0; i < heft_torch_layouts[s->layout].parts; i++) {
        uint32_t part = heft_pickle_item(&t->p, data, i);
        HEFT_TRY(part == HEFT_NONE
                     ? fail(t, s, HEFT_E_FORMAT, "the sparse tensor has too few parts")
                     : heft_torch_contiguous_of(t, s->name, part, &s->parts[i]));
        const heft_torch_type *type = s->parts[i].type;
        bool is_index = i != heft_torch_layouts[s->layout].values;
        if (type->is_quantized || (is_index && type->keeps_name))
            return heft_error_set(t->x->err, HEFT_E_UNSUPPORTED, s->at,
                                  "tensor %q: a part of the sparse tensor has the type %q", s->name,
                                  heft_lit(type->dtype));
    }
    return HEFT_OK;
}

/* Read a list of tensors of different shapes: its shape is that of all numbers in a row. */
static heft_status read_nested(heft_torch *t, sparse *s, uint32_t args)
{
    s->layout = NESTED;
    HEFT_TRY(take_parts(t, s, args));
    s->rank = s->parts[0].rank;
    s->size = s->parts[0].size;
    const heft_torch_contiguous *sizes = &s->parts[1], *strides = &s->parts[2];
    bool fits = s->rank == 1 && sizes->rank == 2 && strides->rank == 2 &&
                sizes->elements == strides->elements &&
                s->parts[3].elements == dim(&t->p, sizes->size, 0);
    return fits ? HEFT_OK
                : fail(t, s, HEFT_E_FORMAT,
                       "the parts of the nested tensor have inconsistent shapes");
}

/* Read the parts and the shape. */
static heft_status read_parts(heft_torch *t, sparse *s, const heft_torch_interpretation *m)
{
    if (heft_pickle_is_global(&t->p, m->callable, "torch._utils", "_rebuild_nested_tensor"))
        return read_nested(t, s, m->args);
    uint32_t layout = heft_pickle_item(&t->p, m->args, 0);
    uint32_t data = heft_pickle_item(&t->p, m->args, 1);
    if (!heft_pickle_is(&t->p, layout, HEFT_PICKLE_OBJECT))
        return fail(t, s, HEFT_E_FORMAT, "the layout of the sparse tensor is missing");
    s->layout = layout_of(&t->p, layout);
    if (s->layout == LAYOUTS)
        return fail(t, s, HEFT_E_UNSUPPORTED, "the layout of the sparse tensor is not supported");
    uint32_t count = heft_torch_layouts[s->layout].parts;
    HEFT_TRY(take_parts(t, s, data));
    s->size = heft_pickle_item(&t->p, data, count);
    if (!heft_torch_sizes(t, &s->size, &s->rank))
        return t->st ? t->st
                     : fail(t, s, HEFT_E_FORMAT,
                            "the shape of the sparse tensor is not a tuple of numbers from 0 on");
    return check_counts(t, s);
}

/* Add the shape of the blocks, which the shape of the tensor does not tell. */
static heft_status add_block_shape(heft_torch *t, const sparse *s)
{
    heft_value v = { .kind = HEFT_KIND_LIST, .key = heft_lit("torch.block") };
    if (!heft_torch_layouts[s->layout].has_blocks)
        return HEFT_OK;
    HEFT_TRY(heft_ix_attr(t->x, s->id, v));
    for (uint32_t i = 1; i <= 2; i++) {
        v = (heft_value){ .kind = HEFT_KIND_UINT, .key = { "", 0 } };
        v.as.u = dim(&t->p, s->parts[2].size, i);
        HEFT_TRY(heft_ix_attr(t->x, s->id, v));
    }
    heft_ix_attr_end(t->x);
    return HEFT_OK;
}

heft_status heft_torch_sparse(heft_torch *t, heft_str name, const heft_torch_interpretation *m)
{
    sparse s = { .name = name, .at = heft_pickle_offset(&t->p, m->value) };
    uint64_t *dims;
    heft_status st = read_parts(t, &s, m);
    const heft_torch_type *type = st ? NULL : s.parts[heft_torch_layouts[s.layout].values].type;
    if (st)
        return heft_torch_leave_unsupported(t, st, s.at);
    st = heft_torch_charge(t, s.rank, s.at);
    if (!st)
        st = heft_ix_tensor(t->x, name, type->type, s.rank, &dims, &s.id);
    if (st)
        return st;
    for (uint32_t i = 0; i < s.rank; i++)
        dims[i] = dim(&t->p, s.size, i);
    st = heft_ix_set_layout(t->x, s.id, heft_lit(heft_torch_layouts[s.layout].layout));
    for (uint32_t i = 0; !st && i < heft_torch_layouts[s.layout].parts; i++) {
        const heft_torch_contiguous *part = &s.parts[i];
        if (part->storage->first_tensor == HEFT_NONE)
            part->storage->first_tensor = s.id;
        st = heft_ix_part(t->x, s.id, heft_lit(heft_torch_layouts[s.layout].roles[i]),
                          part->type->type, part->where, part->length, part->encoding);
        if (!st && t->is_big_endian)
            heft_ix_big_endian(t->x);
        if (!st)
            st = heft_torch_digest(t, part->encoding, part->crc);
    }
    if (!st)
        st = heft_torch_keep_name(t->x, s.id, type, s.at);
    return st ? st : add_block_shape(t, &s);
}
