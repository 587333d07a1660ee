/* sparse_read.c - checks the parts of sparse tensors and iterates over entries. */
#include "core/read/sparse_read.h"

#include "base/sort.h"

uint32_t heft_index_size(heft_dtype t)
{
    return t == HEFT_UNTYPED ? 8 : heft_dtype_is_int(t) ? heft_dtype_size(t) : 0;
}

uint64_t heft_index_value(const uint8_t *p, heft_dtype t)
{
    uint32_t size = heft_index_size(t);
    uint64_t n = 0;
    if (size == 8)
        n = heft_le64(p);
    else
        for (uint32_t i = 0; i < size; i++)
            n |= (uint64_t)p[i] << 8 * i;
    return heft_dtype_is_signed_int(t) && n >> (8 * size - 1) ? UINT64_MAX : n;
}

/* ---- duplicate entries ---- */

enum { MAX_COMPARED = 4 << 20 }; /* maximum number of entries to search */

static size_t buffer_bytes(uint32_t count)
{
    return (size_t)count * 16 + 1;
}

bool heft_positions_open(heft_positions *s, const heft_allocator *al, uint64_t entries,
                         const uint64_t *dims, uint32_t rank)
{
    uint64_t cells;
    *s = (heft_positions){ .linear = NULL };
    if (entries > MAX_COMPARED || !heft_product(&cells, dims, rank) || !cells)
        return true;
    s->count = (uint32_t)entries;
    s->linear = heft_alloc(al, buffer_bytes(s->count), 64);
    if (!s->linear)
        return false;
    memset(s->linear, 0, buffer_bytes(s->count));
    s->ids = (uint32_t *)(s->linear + s->count);
    s->scratch = s->ids + s->count;
    return true;
}

static bool position_less(const void *ctx, uint32_t a, uint32_t b)
{
    const uint64_t *linear = ctx;
    return linear[a] < linear[b];
}

uint32_t heft_positions_repeated(heft_positions *s)
{
    if (!s->linear)
        return HEFT_NONE;
    for (uint32_t i = 0; i < s->count; i++)
        s->ids[i] = i;
    heft_sort(s->ids, s->scratch, s->count, position_less, s->linear);
    for (uint32_t i = 1; i < s->count; i++)
        if (s->linear[s->ids[i]] == s->linear[s->ids[i - 1]])
            return s->ids[i];
    return HEFT_NONE;
}

void heft_positions_close(heft_positions *s, const heft_allocator *al)
{
    heft_free(al, s->linear, buffer_bytes(s->count), 64);
    s->linear = NULL;
}

enum { BUFFER = 64 << 10 };

static const char purpose[] = "to read a sparse tensor";

/* ---- elements ---- */

static heft_status open_elements(heft_elements *n, const heft_file *f, uint32_t part,
                                 uint64_t first, uint64_t count, bool is_for_finding,
                                 heft_error *err)
{
    const heft_allocator *al = f->host->allocator;
    heft_dtype type = heft_ix_part_row_at(&f->x, part)->dtype;
    uint32_t size = type == HEFT_UNTYPED ? heft_index_size(type) : heft_dtype_size(type);
    *n = (heft_elements){ .size = size, .unread = count * size };
    HEFT_TRY(heft_stream_start_for(&n->stream, f, part, is_for_finding, err));
    n->buf = heft_alloc(al, BUFFER, 64);
    heft_status st = n->buf ? heft_stream_skip(&n->stream, first * size, err)
                            : heft_error_no_memory(err, purpose);
    if (st) {
        heft_stream_stop(&n->stream);
        heft_free(al, n->buf, BUFFER, 64);
        n->buf = NULL;
    }
    return st;
}

heft_status heft_elements_next(heft_elements *n, const uint8_t **out, heft_error *err)
{
    heft_status st = HEFT_OK;
    if (n->next == n->filled) {
        n->next = 0;
        n->filled = n->unread < BUFFER ? (uint32_t)n->unread : BUFFER;
        n->unread -= n->filled;
        st = n->filled
                 ? heft_stream_read(n->buf, &n->stream, n->filled, err)
                 : heft_error_plain(err, HEFT_E_FORMAT, "a part has fewer elements than expected");
    }
    *out = n->buf + n->next;
    n->next += n->size;
    return st;
}

heft_status heft_elements_index(heft_elements *n, uint64_t *out, heft_error *err)
{
    const uint8_t *p;
    heft_status st = heft_elements_next(n, &p, err);
    *out = st ? 0 : heft_index_value(p, n->stream.row.dtype);
    return st;
}

void heft_elements_close(heft_elements *n)
{
    if (!n->buf)
        return;
    const heft_allocator *al = n->stream.f->host->allocator;
    heft_free(al, n->buf, BUFFER, 64);
    heft_stream_stop(&n->stream);
    n->buf = NULL;
}

/* ---- parts ---- */

typedef struct sparse_parts {
    const heft_file *f;
    uint32_t tensor;
    const heft_ix_tensor_row *row;
    const uint64_t *dims;
    uint32_t values, indices, indptr, coords; /* or HEFT_NONE */
    uint64_t count;                           /* number of values */
    heft_range *where;                        /* range of the first fault */
    bool is_for_finding;                      /* errors name neither tensor nor shard */
    heft_error *err;
} sparse_parts;

static const heft_range nowhere = { HEFT_NOWHERE, 0 };
/* A damaged frame states no length. */
static const char unknown_length[] = "the decoded length of a part is unknown";

static heft_status format_error(const sparse_parts *p, heft_range where, const char *fmt,
                                uint64_t a, uint64_t b)
{
    heft_error why;
    *p->where = where;
    if (p->is_for_finding)
        return heft_error_plain(p->err, HEFT_E_FORMAT, fmt, a, b);
    heft_error_plain(&why, HEFT_E_FORMAT, fmt, a, b);
    heft_status st = heft_error_plain(p->err, HEFT_E_FORMAT, "tensor %q: %s",
                                      heft_ix_name(&p->f->x, p->tensor), why.message);
    return heft_file_error_at(p->f, where.offset, st, p->err);
}

static uint32_t find_part(const sparse_parts *p, const char *role)
{
    return heft_ix_part_find(&p->f->x, p->tensor, heft_lit(role));
}

static const heft_ix_part_row *part_row(const sparse_parts *p, uint32_t part)
{
    return heft_ix_part_row_at(&p->f->x, part);
}

static heft_range part_range(const sparse_parts *p, uint32_t part)
{
    const heft_ix_part_row *row = part_row(p, part);
    return row->stored ? (heft_range){ row->offset, row->stored } : nowhere;
}

/* Return the bytes of element i of an index part; all bytes of the part if the elements are not
 * stored as such. */
static heft_range index_range(const sparse_parts *p, uint32_t part, uint64_t i)
{
    const heft_ix_part_row *row = part_row(p, part);
    uint32_t size = heft_index_size(row->dtype);
    if (row->encoding != HEFT_RAW || row->flags & HEFT_P_VIEW)
        return part_range(p, part);
    return (heft_range){ row->offset + i * size, size };
}

/* Set *out to the number of elements of `size` bytes.  Return false if the part does not divide
 * evenly. */
static bool element_count(uint64_t *out, const heft_ix_part_row *row, uint32_t size)
{
    *out = size ? heft_div(row->length, size) : 0;
    return size && *out * size == row->length && row->length != HEFT_UNKNOWN_LENGTH;
}

/* Take the number of values from the number of indices. */
static heft_status count_indices(sparse_parts *p, bool is_csr)
{
    uint32_t part = is_csr ? p->indices : p->coords;
    const heft_ix_part_row *row = part_row(p, part);
    uint64_t entry_bytes;
    if (!heft_mul(&entry_bytes, heft_index_size(row->dtype), is_csr ? 1 : p->row->rank) ||
        entry_bytes > UINT32_MAX || !element_count(&p->count, row, (uint32_t)entry_bytes))
        return format_error(p, part_range(p, part),
                            "its %U bytes of indices are not a whole number of entries",
                            row->length, 0);
    return HEFT_OK;
}

static heft_status find_parts(sparse_parts *p, const heft_file *f, uint32_t tensor,
                              bool is_for_finding, heft_range *where, heft_error *err)
{
    const heft_ix_tensor_row *row = heft_ix_row(&f->x, tensor);
    *p = (sparse_parts){ .f = f,
                         .tensor = tensor,
                         .row = row,
                         .where = where,
                         .is_for_finding = is_for_finding,
                         .err = err };
    p->dims = heft_ix_dims(&f->x, tensor);
    p->values = find_part(p, "values");
    p->indices = find_part(p, "indices");
    p->indptr = find_part(p, "indptr");
    p->coords = find_part(p, "coords");
    bool is_csr = row->layout == HEFT_SPARSE_CSR;
    if (is_csr && row->rank != 2)
        return format_error(p, nowhere, "sparse_csr needs 2 dimensions, and its shape has %U",
                            row->rank, 0);
    if (p->values == HEFT_NONE || (is_csr && (p->indices == HEFT_NONE || p->indptr == HEFT_NONE)) ||
        (!is_csr && p->coords == HEFT_NONE))
        return format_error(p, nowhere, "parts that its layout requires are missing", 0, 0);
    const heft_ix_part_row *values = part_row(p, p->values);
    if (values->length == HEFT_UNKNOWN_LENGTH)
        return format_error(p, part_range(p, p->values), unknown_length, 0, 0);
    if (!heft_dtype_size(values->dtype)) /* packed elements, or an unknown type */
        return count_indices(p, is_csr);
    if (!element_count(&p->count, values, heft_dtype_size(values->dtype)))
        return format_error(p, part_range(p, p->values),
                            "its %U bytes of values are not a whole number of elements",
                            values->length, 0);
    if (!row->rank && p->count > 1)
        return format_error(p, part_range(p, p->values),
                            "a scalar has one element, and there are %U entries", p->count, 0);
    return HEFT_OK;
}

/* Check that a part has exactly `wanted` indices. */
static heft_status check_index_part(const sparse_parts *p, uint32_t part, uint64_t wanted,
                                    const char *fmt)
{
    const heft_ix_part_row *row = part_row(p, part);
    uint64_t count;
    if (!heft_index_size(row->dtype))
        return format_error(p, part_range(p, part), "the type of an index part is not an integer",
                            0, 0);
    if (row->length == HEFT_UNKNOWN_LENGTH)
        return format_error(p, part_range(p, part), unknown_length, 0, 0);
    if (!element_count(&count, row, heft_index_size(row->dtype)) || count != wanted)
        return format_error(p, part_range(p, part), fmt,
                            heft_div(row->length, heft_index_size(row->dtype)), wanted);
    return HEFT_OK;
}

/* ---- compressed rows ---- */

typedef struct csr_check {
    sparse_parts p;
    heft_elements pointers, columns;
    bool has_duplicates, has_descending;
    heft_positions row; /* columns of the current row */
} csr_check;

enum { MAX_SORTED_ROW = 64 << 10 }; /* longest row to be sorted in search of duplicates */

/* Check the columns of a row, whose first value is `first`.  In a row longer than MAX_SORTED_ROW
 * only adjacent duplicates are found. */
static heft_status check_row(csr_check *r, uint64_t first, uint64_t count, uint64_t row)
{
    uint64_t last = 0, columns = r->p.dims[1];
    bool is_ascending = true, fits = count <= MAX_SORTED_ROW;
    heft_status st = HEFT_OK;
    for (uint64_t i = 0; i < count && !st; i++) {
        uint64_t column;
        st = heft_elements_index(&r->columns, &column, r->p.err);
        if (!st && column >= columns)
            return format_error(&r->p, index_range(&r->p, r->p.indices, first + i),
                                "row %U has an entry in column %U, which is out of bounds", row,
                                column);
        r->has_duplicates |= i && column == last;
        is_ascending = is_ascending && (!i || column > last);
        last = column;
        if (!st && fits)
            r->row.linear[i] = column;
    }
    r->has_descending |= !is_ascending;
    heft_positions columns_of_row = r->row;
    columns_of_row.count = (uint32_t)count;
    if (!st && fits && !is_ascending && !r->has_duplicates)
        r->has_duplicates = heft_positions_repeated(&columns_of_row) != HEFT_NONE;
    return st;
}

static heft_status check_rows(csr_check *r)
{
    uint64_t begin, end;
    HEFT_TRY(heft_elements_index(&r->pointers, &begin, r->p.err));
    if (begin)
        return format_error(&r->p, index_range(&r->p, r->p.indptr, 0),
                            "its row pointers begin with %U, not 0", begin, 0);
    for (uint64_t row = 0; row < r->p.dims[0]; row++, begin = end) {
        HEFT_TRY(heft_elements_index(&r->pointers, &end, r->p.err));
        if (end < begin)
            return format_error(&r->p, index_range(&r->p, r->p.indptr, row + 1),
                                "its row pointers decrease after row %U, to %U", row, end);
        if (end > r->p.count)
            return format_error(&r->p, index_range(&r->p, r->p.indptr, row + 1),
                                "a row pointer is %U, but there are only %U values", end,
                                r->p.count);
        HEFT_TRY(check_row(r, begin, end - begin, row));
    }
    if (begin != r->p.count)
        return format_error(&r->p, index_range(&r->p, r->p.indptr, r->p.dims[0]),
                            "its rows end at value %U of %U", begin, r->p.count);
    return HEFT_OK;
}

static heft_status check_csr(const sparse_parts *p, heft_sparse_order *order)
{
    csr_check r = { .p = *p };
    const heft_allocator *al = p->f->host->allocator;
    heft_status st = p->dims[0] == UINT64_MAX
                         ? format_error(p, nowhere, "it has too many rows", 0, 0)
                         : HEFT_OK;
    if (!st)
        st = check_index_part(p, p->indices, p->count, "it has %U column indices for %U values");
    if (!st)
        st = check_index_part(p, p->indptr, p->dims[0] + 1,
                              "it has %U row pointers, %U are needed");
    uint64_t longest_row = p->count < MAX_SORTED_ROW ? p->count : MAX_SORTED_ROW;
    if (!st && !heft_positions_open(&r.row, al, longest_row, NULL, 0))
        st = heft_error_no_memory(p->err, purpose);
    if (!st)
        st = open_elements(&r.pointers, p->f, p->indptr, 0, p->dims[0] + 1, p->is_for_finding,
                           p->err);
    if (!st)
        st = open_elements(&r.columns, p->f, p->indices, 0, p->count, p->is_for_finding, p->err);
    if (!st)
        st = check_rows(&r);
    heft_elements_close(&r.pointers);
    heft_elements_close(&r.columns);
    heft_positions_close(&r.row, al);
    order->has_duplicates = r.has_duplicates;
    order->is_ascending = !r.has_descending;
    return st;
}

/* ---- coordinates ---- */

static heft_status check_coords(const sparse_parts *p, heft_positions *s, heft_elements *n)
{
    heft_status st = HEFT_OK;
    for (uint32_t d = 0; d < p->row->rank && !st; d++)
        for (uint64_t i = 0; i < p->count && !st; i++) {
            uint64_t index = 0;
            st = heft_elements_index(n, &index, p->err);
            if (!st && index >= p->dims[d])
                st = format_error(p, index_range(p, p->coords, d * p->count + i),
                                  "a coordinate of dimension %U is %U, which is out of bounds", d,
                                  index);
            heft_positions_add(s, i, p->dims[d], index);
        }
    return st;
}

static heft_status check_coo(const sparse_parts *p, heft_sparse_order *order)
{
    heft_elements n = { .buf = NULL };
    const heft_allocator *al = p->f->host->allocator;
    heft_positions s = { .linear = NULL };
    uint64_t wanted;
    if (!heft_mul(&wanted, p->count, p->row->rank))
        return format_error(p, nowhere, "it has too many values", 0, 0);
    heft_status st = check_index_part(p, p->coords, wanted, "it has %U coordinates, %U are needed");
    if (!st && !heft_positions_open(&s, al, p->count, p->dims, p->row->rank))
        st = heft_error_no_memory(p->err, purpose);
    if (!st)
        st = open_elements(&n, p->f, p->coords, 0, wanted, p->is_for_finding, p->err);
    if (!st)
        st = check_coords(p, &s, &n);
    if (!st)
        order->has_duplicates = heft_positions_repeated(&s) != HEFT_NONE;
    heft_elements_close(&n);
    heft_positions_close(&s, al);
    return st;
}

heft_status heft_sparse_check(const heft_file *f, uint32_t tensor, bool is_for_finding,
                              heft_sparse_order *order, heft_error *err)
{
    heft_error own;
    sparse_parts p;
    *order = (heft_sparse_order){ false, true, nowhere };
    HEFT_TRY(find_parts(&p, f, tensor, is_for_finding, &order->where, err ? err : &own));
    order->where = part_range(&p, p.row->layout == HEFT_SPARSE_CSR ? p.indices : p.coords);
    heft_file_enter(f);
    heft_status st = p.row->layout == HEFT_SPARSE_CSR ? check_csr(&p, order) : check_coo(&p, order);
    return heft_file_leave_after(f, st, err);
}

/* ---- entries ---- */

static heft_status open_indices(heft_entries *e, const sparse_parts *p, heft_error *err)
{
    bool is_csr = p->row->layout == HEFT_SPARSE_CSR;
    e->index_count = is_csr ? 2 : p->row->rank;
    if (is_csr) {
        HEFT_TRY(open_elements(&e->indices[0], e->f, p->indices, 0, p->count, false, err));
        HEFT_TRY(open_elements(&e->indices[1], e->f, p->indptr, 0, p->dims[0] + 1, false, err));
        return heft_elements_index(&e->indices[1], &e->row_end, err);
    }
    for (uint32_t d = 0; d < p->row->rank; d++)
        HEFT_TRY(
            open_elements(&e->indices[d], e->f, p->coords, d * p->count, p->count, false, err));
    return HEFT_OK;
}

heft_status heft_entries_open(heft_entries *e, const heft_file *f, uint32_t tensor, heft_error *err)
{
    sparse_parts p;
    heft_range where;
    *e = (heft_entries){ .f = f, .tensor = tensor, .row = UINT64_MAX };
    HEFT_TRY(find_parts(&p, f, tensor, false, &where, err));
    if (p.row->rank > HEFT_SPARSE_RANK)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "tensor %q: sparse tensors of more than %U dimensions cannot be "
                                "converted, only copied",
                                heft_ix_name(&f->x, tensor), (uint64_t)HEFT_SPARSE_RANK);
    e->count = p.count;
    heft_status st = open_elements(&e->values, f, p.values, 0, p.count, false, err);
    if (!st)
        st = open_indices(e, &p, err);
    if (st)
        heft_entries_close(e);
    return st;
}

void heft_entries_close(heft_entries *e)
{
    for (uint32_t i = 0; i < e->index_count; i++)
        heft_elements_close(&e->indices[i]);
    heft_elements_close(&e->values);
}

static heft_status changed_error(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_IO, "the data changed while being read");
}

static heft_status next_csr(heft_entries *e, const uint64_t *dims, heft_error *err)
{
    uint64_t column = 0;
    heft_status st = HEFT_OK;
    while (e->consumed == e->row_end && !st) {
        st = heft_elements_index(&e->indices[1], &e->row_end, err);
        e->row++;
    }
    if (!st)
        st = heft_elements_index(&e->indices[0], &column, err);
    bool fits = e->row < dims[0] && column < dims[1] && e->consumed < e->row_end;
    if (!st && (!fits || e->row_end > e->count))
        st = changed_error(err);
    e->position = e->row * dims[1] + column;
    return st;
}

static heft_status next_coo(heft_entries *e, const uint64_t *dims, heft_error *err)
{
    heft_status st = HEFT_OK;
    e->position = 0;
    for (uint32_t d = 0; d < e->index_count && !st; d++) {
        uint64_t index = 0;
        st = heft_elements_index(&e->indices[d], &index, err);
        if (!st && index >= dims[d])
            st = changed_error(err);
        e->position = e->position * dims[d] + index;
    }
    return st;
}

heft_status heft_entries_next(heft_entries *e, heft_error *err)
{
    const uint64_t *dims = heft_ix_dims(&e->f->x, e->tensor);
    bool is_csr = heft_ix_row(&e->f->x, e->tensor)->layout == HEFT_SPARSE_CSR;
    heft_status st = is_csr ? next_csr(e, dims, err) : next_coo(e, dims, err);
    const uint8_t *value;
    if (!st)
        st = heft_elements_next(&e->values, &value, err);
    if (!st)
        memcpy(e->value, value, e->values.size);
    e->consumed++;
    return st;
}
