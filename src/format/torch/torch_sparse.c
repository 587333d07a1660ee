/* torch_sparse.c - reads sparse tensors: (layout, data), where data is (coords, values, shape, …)
 * or (row pointers, columns, values, shape).  The parts must be contiguous. */
#include "format/torch/torch.h"

enum { MAX_PARTS = HEFT_TORCH_SPARSE_PARTS, LAYOUTS = HEFT_TORCH_LAYOUTS };

const heft_torch_layout heft_torch_layouts[HEFT_TORCH_LAYOUTS] = {
    { "torch.sparse_coo", "sparse_coo", { "coords", "values" }, 2, 1 },
    { "torch.sparse_csr", "sparse_csr", { "indptr", "indices", "values" }, 3, 2 },
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
    while (n < LAYOUTS && !heft_str_is(heft_pickle_at(p, text)->as.s, heft_torch_layouts[n].name))
        n++;
    return n;
}

static uint64_t dim(const heft_pickle *p, uint32_t size, uint32_t i)
{
    uint64_t n = 0;
    heft_pickle_u64(&n, p, heft_pickle_item(p, size, i));
    return n;
}

/* Check the shapes of the parts against each other; heft_file_verify() checks the values. */
static heft_status check_counts(const heft_torch *t, const sparse *s)
{
    const heft_pickle *p = &t->p;
    const heft_torch_contiguous *first = &s->parts[0],
                                *values = &s->parts[heft_torch_layouts[s->layout].values];
    if (values->rank != 1)
        return fail(t, s, HEFT_E_UNSUPPORTED,
                    "sparse tensors with dense blocks as values are not supported");
    bool fits = first->rank == 2 && dim(p, first->size, 0) == s->rank &&
                dim(p, first->size, 1) == values->elements;
    if (heft_torch_layouts[s->layout].parts == MAX_PARTS)
        fits = s->rank == 2 && first->rank == 1 && s->parts[1].rank == 1 && first->elements &&
               first->elements - 1 == dim(p, s->size, 0) &&
               s->parts[1].elements == values->elements;
    return fits ? HEFT_OK
                : fail(t, s, HEFT_E_FORMAT,
                       "the parts of the sparse tensor have inconsistent shapes");
}

static heft_status read_shape(const heft_torch *t, sparse *s, uint32_t value)
{
    uint64_t n;
    if (value != HEFT_NONE)
        value = heft_torch_interpret(t, value).value;
    if (!heft_pickle_is(&t->p, value, HEFT_PICKLE_TUPLE))
        return fail(t, s, HEFT_E_FORMAT, "the sparse tensor has no shape");
    s->size = value;
    s->rank = heft_pickle_at(&t->p, value)->as.items.count;
    for (uint32_t i = 0; i < s->rank; i++)
        if (!heft_pickle_u64(&n, &t->p, heft_pickle_item(&t->p, value, i)))
            return fail(t, s, HEFT_E_FORMAT, "a dimension of the sparse tensor is not a number");
    return HEFT_OK;
}

/* Read the parts and the shape. */
static heft_status read_parts(heft_torch *t, sparse *s, const heft_torch_interpretation *m)
{
    uint32_t layout = heft_pickle_item(&t->p, m->args, 0);
    uint32_t data = heft_pickle_item(&t->p, m->args, 1);
    if (!heft_pickle_is(&t->p, layout, HEFT_PICKLE_OBJECT))
        return fail(t, s, HEFT_E_FORMAT, "the layout of the sparse tensor is missing");
    s->layout = layout_of(&t->p, layout);
    if (s->layout == LAYOUTS)
        return fail(t, s, HEFT_E_UNSUPPORTED, "the layout of the sparse tensor is not supported");
    uint32_t count = heft_torch_layouts[s->layout].parts;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t part = heft_pickle_item(&t->p, data, i);
        HEFT_TRY(part == HEFT_NONE
                     ? fail(t, s, HEFT_E_FORMAT, "the sparse tensor has too few parts")
                     : heft_torch_contiguous_of(t, s->name, part, &s->parts[i]));
    }
    HEFT_TRY(read_shape(t, s, heft_pickle_item(&t->p, data, count)));
    return check_counts(t, s);
}

heft_status heft_torch_sparse(heft_torch *t, heft_str name, const heft_torch_interpretation *m)
{
    sparse s = { .name = name, .at = heft_pickle_offset(&t->p, m->value) };
    uint64_t *dims;
    heft_status st = read_parts(t, &s, m);
    if (st)
        return heft_torch_leave_unsupported(t, st, s.at);
    st = heft_torch_charge(t, s.rank, s.at);
    if (!st)
        st = heft_ix_tensor(t->x, name, s.parts[heft_torch_layouts[s.layout].values].type, s.rank,
                            &dims, &s.id);
    if (st)
        return st;
    for (uint32_t i = 0; i < s.rank; i++)
        dims[i] = dim(&t->p, s.size, i);
    st = heft_ix_set_layout(t->x, s.id, heft_lit(heft_torch_layouts[s.layout].layout));
    for (uint32_t i = 0; !st && i < heft_torch_layouts[s.layout].parts; i++) {
        const heft_torch_contiguous *part = &s.parts[i];
        if (part->storage->first_tensor == HEFT_NONE)
            part->storage->first_tensor = s.id;
        st = heft_ix_part(t->x, s.id, heft_lit(heft_torch_layouts[s.layout].roles[i]), part->type,
                          part->where, part->length, part->encoding);
        if (!st && t->is_big_endian)
            heft_ix_big_endian(t->x);
        if (!st)
            st = heft_torch_digest(t, part->encoding, part->crc);
    }
    return st;
}
