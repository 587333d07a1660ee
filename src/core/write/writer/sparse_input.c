/* sparse_input.c - check the declaration of a sparse tensor, and the indices on arrival. */
#include "core/write/writer/sparse_input.h"

/* ---- declaring ---- */

static heft_status spec_error(const heft_tensor_spec *s, heft_error *err, const char *fmt,
                              uint64_t a, uint64_t b)
{
    heft_error why;
    heft_error_plain(&why, HEFT_E_ARGUMENT, fmt, a, b);
    return heft_error_plain(err, HEFT_E_ARGUMENT, "tensor %q: %s", s->name, why.message);
}

static uint32_t find(const heft_tensor_spec *s, const char *role)
{
    for (uint32_t i = 0; i < s->component_count; i++)
        if (heft_str_is(s->components[i].role, role))
            return i;
    return HEFT_NONE;
}

static heft_status check_indices(const heft_tensor_spec *s, uint32_t i, uint64_t needed,
                                 heft_error *err)
{
    const heft_component *c = &s->components[i];
    if (!c->dtype || !heft_index_size(c->dtype))
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "tensor %q: component %q: indices must be integers, not %s",
                                s->name, c->role, heft_dtype_name(c->dtype));
    if (c->count != needed)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "tensor %q: component %q: %U elements are declared, %U are needed",
                                s->name, c->role, c->count, needed);
    return HEFT_OK;
}

static heft_status check_csr(const heft_sparse_spec *out, const heft_tensor_spec *s,
                             heft_error *err)
{
    if (out->indices == HEFT_NONE || out->indptr == HEFT_NONE || s->component_count != 3)
        return spec_error(
            s, err, "sparse_csr needs exactly the components values, indices and indptr", 0, 0);
    if (s->rank != 2)
        return spec_error(s, err, "sparse_csr needs two dimensions, not %U", s->rank, 0);
    if (s->dims[0] == UINT64_MAX)
        return spec_error(s, err, "the row pointers of %U rows overflow 64 bits", s->dims[0], 0);
    HEFT_TRY(check_indices(s, out->indices, out->entries, err));
    return check_indices(s, out->indptr, s->dims[0] + 1, err);
}

static heft_status check_coo(const heft_sparse_spec *out, const heft_tensor_spec *s,
                             heft_error *err)
{
    uint64_t needed;
    if (out->indices == HEFT_NONE || s->component_count != 2)
        return spec_error(s, err, "sparse_coo needs exactly the components values and coords", 0,
                          0);
    if (!s->rank)
        return spec_error(s, err, "a scalar cannot be sparse", 0, 0);
    if (!heft_mul(&needed, out->entries, s->rank))
        return spec_error(s, err, "the coordinates of %U values overflow 64 bits", out->entries, 0);
    return check_indices(s, out->indices, needed, err);
}

heft_status heft_sparse_declare(heft_sparse_spec *out, const heft_tensor_spec *s, heft_error *err)
{
    bool is_csr = heft_str_is(s->layout, "sparse_csr");
    uint32_t values = find(s, "values");
    *out = (heft_sparse_spec){ .name = s->name,
                               .dims = s->dims,
                               .rank = s->rank,
                               .part_count = s->component_count,
                               .layout = is_csr ? HEFT_SPARSE_CSR : HEFT_SPARSE_COO };
    out->indices = find(s, is_csr ? "indices" : "coords");
    out->indptr = is_csr ? find(s, "indptr") : HEFT_NONE;
    if (values == HEFT_NONE)
        return spec_error(s, err, "a sparse tensor needs the component values", 0, 0);
    if (s->components[values].dtype != s->dtype)
        return spec_error(s, err, "the component values must have the element type of the tensor",
                          0, 0);
    out->entries = s->components[values].count;
    HEFT_TRY(is_csr ? check_csr(out, s, err) : check_coo(out, s, err));
    for (uint32_t i = 0; i < s->component_count; i++)
        out->types[i] = s->components[i].dtype;
    return HEFT_OK;
}

/* ---- rules for indices ---- */

static heft_status index_error(const heft_sparse_input *f, uint32_t part, uint64_t element,
                               heft_error *err, const char *fmt, uint64_t a, uint64_t b)
{
    bool is_csr = f->spec->layout == HEFT_SPARSE_CSR;
    const char *role = part == f->spec->indptr ? "indptr" : is_csr ? "indices" : "coords";
    heft_error why;
    heft_error_plain(&why, HEFT_E_ARGUMENT, fmt, a, b);
    return heft_error_plain(err, HEFT_E_ARGUMENT, "tensor %q: component '%s': element %U %s",
                            f->spec->name, role, element, why.message);
}

static heft_status out_of_bounds(const heft_sparse_input *f, uint64_t n, const char *fmt,
                                 uint64_t bound, heft_error *err)
{
    if (n == UINT64_MAX)
        return index_error(f, f->part, f->at, err, "is negative or 2^64 - 1", 0, 0);
    return index_error(f, f->part, f->at, err, fmt, n, bound);
}

static heft_status add_break(heft_sparse_input *f, uint64_t at, heft_error *err)
{
    uint64_t *to = heft_vec_push(&f->mem, &f->breaks, sizeof *to);
    if (!to)
        return heft_error_no_memory(err, "to check a sparse tensor");
    *to = at;
    return HEFT_OK;
}

static heft_status not_ascending(const heft_sparse_input *f, uint64_t element, heft_error *err)
{
    return index_error(f, f->spec->indices, element, err,
                       "is not greater than the column before it in the row: this format requires "
                       "ascending columns in each row",
                       0, 0);
}

/* Check the beginning of a row, after which columns may start again from 0. */
static heft_status check_row_start(heft_sparse_input *f, uint64_t begin, heft_error *err)
{
    const uint64_t *breaks = f->breaks.ptr;
    if (!f->has_indices)
        return begin && begin < f->spec->entries && begin != f->last ? add_break(f, begin, err)
                                                                     : HEFT_OK;
    if (f->next < f->breaks.len && breaks[f->next] < begin)
        return not_ascending(f, breaks[f->next], err);
    f->next += f->next < f->breaks.len && breaks[f->next] == begin;
    return HEFT_OK;
}

static heft_status check_pointer(heft_sparse_input *f, uint64_t n, heft_error *err)
{
    uint64_t rows = f->spec->dims[0], entries = f->spec->entries;
    if (!f->at && n)
        return index_error(f, f->part, 0, err, "is %U: the first row pointer must be 0", n, 0);
    if (n < f->last)
        return index_error(f, f->part, f->at, err, "is %U, less than %U before it", n, f->last);
    if (n > entries)
        return out_of_bounds(f, n, "is %U, but there are %U values", entries, err);
    if (f->at == rows && n != entries)
        return index_error(f, f->part, f->at, err,
                           "is %U: the last row pointer must be the number of values, %U", n,
                           entries);
    return f->spec->is_strict ? check_row_start(f, n, err) : HEFT_OK;
}

/* Accept a column that does not ascend only as the first column of a row. */
static heft_status check_break(heft_sparse_input *f, heft_error *err)
{
    const uint64_t *breaks = f->breaks.ptr;
    if (!f->has_pointers) /* each row but the first accounts for a single break at most */
        return f->breaks.len + 1ull < f->spec->dims[0] ? add_break(f, f->at, err)
                                                       : not_ascending(f, f->at, err);
    while (f->next < f->breaks.len && breaks[f->next] < f->at)
        f->next++;
    bool is_first = f->next < f->breaks.len && breaks[f->next] == f->at;
    return is_first ? HEFT_OK : not_ascending(f, f->at, err);
}

static heft_status check_column(heft_sparse_input *f, uint64_t n, heft_error *err)
{
    uint64_t columns = f->spec->dims[1];
    if (n >= columns)
        return out_of_bounds(f, n, "is %U, but there are %U columns", columns, err);
    return f->spec->is_strict && f->at && n <= f->last ? check_break(f, err) : HEFT_OK;
}

static heft_status check_coordinate(heft_sparse_input *f, uint64_t n, heft_error *err)
{
    uint64_t dim = f->spec->dims[f->dim];
    if (n >= dim)
        return out_of_bounds(f, n, "is %U, but the dimension is %U", dim, err);
    heft_positions_add(&f->positions, f->entry, dim, n);
    f->entry++;
    if (f->entry == f->spec->entries) {
        f->entry = 0;
        f->dim++;
    }
    return HEFT_OK;
}

/* ---- indices on arrival ---- */

void heft_sparse_begin(heft_sparse_input *f, const heft_sparse_spec *s, const heft_allocator *al)
{
    *f = (heft_sparse_input){ .spec = s, .al = al, .mem = { al, UINT64_MAX, 0 } };
}

void heft_sparse_end(heft_sparse_input *f)
{
    if (!f->al)
        return;
    heft_positions_close(&f->positions, f->al);
    heft_vec_free(&f->mem, &f->breaks, sizeof(uint64_t));
    *f = (heft_sparse_input){ .spec = NULL };
}

bool heft_sparse_is_index(const heft_sparse_spec *s, uint32_t part)
{
    return part == s->indices || part == s->indptr;
}

heft_status heft_sparse_begin_part(heft_sparse_input *f, uint32_t part, heft_error *err)
{
    const heft_sparse_spec *s = f->spec;
    bool is_coords = part == s->indices && s->layout == HEFT_SPARSE_COO;
    f->part = part;
    f->at = f->last = f->entry = 0;
    f->dim = f->next = 0;
    if (is_coords && s->is_strict &&
        !heft_positions_open(&f->positions, f->al, s->entries, s->dims, s->rank))
        return heft_error_no_memory(err, "to check a sparse tensor");
    return HEFT_OK;
}

static heft_status check_index(heft_sparse_input *f, uint64_t n, heft_error *err)
{
    bool is_csr = f->spec->layout == HEFT_SPARSE_CSR;
    heft_status st = f->part == f->spec->indptr ? check_pointer(f, n, err)
                     : is_csr                   ? check_column(f, n, err)
                                                : check_coordinate(f, n, err);
    f->last = n;
    f->at++;
    return st;
}

/* Return the bytes of the next element, which may have begun in an earlier piece.  NULL: the
 * piece ends within the element. */
static const uint8_t *next_element(heft_sparse_input *f, const uint8_t **data, size_t *len,
                                   uint32_t size)
{
    const uint8_t *from = *data;
    if (!f->carried && *len >= size) {
        *data += size;
        *len -= size;
        return from;
    }
    for (; *len && f->carried < size; (*len)--)
        f->carry[f->carried++] = *(*data)++;
    if (f->carried < size)
        return NULL;
    f->carried = 0;
    return f->carry;
}

heft_status heft_sparse_take(heft_sparse_input *f, const uint8_t **data, size_t *len, uint64_t *out,
                             uint32_t max, uint32_t *count, heft_error *err)
{
    heft_dtype type = f->spec->types[f->part];
    uint32_t size = heft_index_size(type);
    const uint8_t *p;
    *count = 0;
    while (*count < max && (p = next_element(f, data, len, size))) {
        out[*count] = heft_index_value(p, type);
        HEFT_TRY(check_index(f, out[(*count)++], err));
    }
    return HEFT_OK;
}

heft_status heft_sparse_end_part(heft_sparse_input *f, heft_error *err)
{
    f->has_indices |= f->part == f->spec->indices;
    f->has_pointers |= f->part == f->spec->indptr;
    if (!f->positions.linear || f->part != f->spec->indices)
        return HEFT_OK;
    uint32_t repeated = heft_positions_repeated(&f->positions);
    heft_positions_close(&f->positions, f->al);
    if (repeated == HEFT_NONE)
        return HEFT_OK;
    return index_error(f, f->part, repeated, err,
                       "repeats, with the other dimensions, the coordinates of another entry", 0,
                       0);
}
