/* decoded_length.c - finds the lengths of compressed parts.  In a sparse tensor, the length of a
 * single part determines all lengths. */
#include "core/read/decode.h"

#include "core/read/stream.h"

enum {
    MAX_DECODED = 1 << 30, /* limit for decoding a part of row pointers up to the last */
    MIN_BUDGET = 1 << 29,  /* bytes that may be decoded for all parts of a small file */
    MAX_RATIO = 256        /* limit for a larger file, in multiples of its size */
};

/* Tensors can share a compressed part, so the sum for all parts is limited as well. */
typedef struct budget {
    uint64_t left;
} budget;

/* Return false if nothing is left. */
static bool spend(budget *b, uint64_t bytes)
{
    bool has_some = b->left;
    b->left -= bytes < b->left ? bytes : b->left;
    return has_some;
}

/* Ignore errors of a broken part: heft_file_verify() reports them.  Keep errors of the system. */
static heft_status ignore_bad_part(heft_status st)
{
    bool system = st == HEFT_E_NOMEM || st == HEFT_E_IO;
    return system ? st : HEFT_OK;
}

static heft_status resolve_by_decoding(heft_file *f, uint32_t part, budget *b, heft_error *err)
{
    uint64_t length = 0;
    if (!spend(b, 0))
        return HEFT_OK;
    heft_status st = heft_stream_decoded_length(&length, f, part, false, err);
    spend(b, length);
    if (!st)
        heft_ix_part_row_at(&f->x, part)->length = length;
    return ignore_bad_part(st);
}

/* Read the last row pointer: the number of entries. */
static heft_status read_last_row_pointer(uint64_t *out, heft_file *f, uint32_t part, budget *b,
                                         heft_error *err)
{
    const heft_ix_part_row *row = heft_ix_part_row_at(&f->x, part);
    uint32_t size = heft_dtype_size(row->dtype);
    uint8_t bytes[8] = { 0 };
    if (!size || size > sizeof bytes || row->length < size ||
        row->length > MAX_DECODED /* an unknown length, too */ ||
        !spend(b, row->encoding == HEFT_RAW ? size : row->length))
        return HEFT_E_UNSUPPORTED;
    heft_status st = heft_part_read(bytes, f, part, row->length - size, size, err);
    *out = heft_le64(bytes);
    return st;
}

typedef struct sparse { /* parts of a sparse tensor, or HEFT_NONE */
    uint32_t values, indices, indptr, coords;
    uint64_t rank;
} sparse;

/* Derive the number of entries from the length of a part with `per_entry` elements each.  Return
 * false if the length is unknown. */
static bool entries_from_length(uint64_t *entries, const heft_index *x, uint32_t part,
                                uint64_t per_entry)
{
    const heft_ix_part_row *p = part == HEFT_NONE ? NULL : heft_ix_part_row_at(x, part);
    uint64_t size = p ? heft_dtype_size(p->dtype) * per_entry : 0;
    if (!size || p->length == HEFT_UNKNOWN_LENGTH)
        return false;
    *entries = heft_div(p->length, size);
    return true;
}

static void set_length(heft_index *x, uint32_t part, uint64_t entries, uint64_t per_entry)
{
    heft_ix_part_row *p = part == HEFT_NONE ? NULL : heft_ix_part_row_at(x, part);
    uint64_t length, size = p ? heft_dtype_size(p->dtype) * per_entry : 0;
    if (size && p->length == HEFT_UNKNOWN_LENGTH && heft_mul(&length, entries, size))
        p->length = length;
}

/* Count the entries of a sparse tensor: from a known length, from the last row pointer, or by
 * decoding the coordinates. */
static heft_status count_entries(uint64_t *entries, bool *is_known, heft_file *f, const sparse *s,
                                 budget *b, heft_error *err)
{
    heft_status st = HEFT_OK;
    *is_known = entries_from_length(entries, &f->x, s->values, 1) ||
                entries_from_length(entries, &f->x, s->indices, 1) ||
                entries_from_length(entries, &f->x, s->coords, s->rank);
    if (!*is_known && s->indptr != HEFT_NONE) {
        st = read_last_row_pointer(entries, f, s->indptr, b, err);
        *is_known = !st;
    } else if (!*is_known && s->coords != HEFT_NONE) {
        /* Values may exceed the ratio limit of heft_stream_decoded_length(). */
        st = resolve_by_decoding(f, s->coords, b, err);
        *is_known = entries_from_length(entries, &f->x, s->coords, s->rank);
    }
    return ignore_bad_part(st);
}

static heft_status resolve_sparse(heft_file *f, uint32_t t, budget *b, heft_error *err)
{
    sparse s = { .values = heft_ix_part_find(&f->x, t, heft_lit("values")),
                 .indices = heft_ix_part_find(&f->x, t, heft_lit("indices")),
                 .indptr = heft_ix_part_find(&f->x, t, heft_lit("indptr")),
                 .coords = heft_ix_part_find(&f->x, t, heft_lit("coords")),
                 .rank = heft_ix_row(&f->x, t)->rank };
    uint64_t entries = 0;
    bool is_known;
    heft_status st = count_entries(&entries, &is_known, f, &s, b, err);
    if (st || !is_known)
        return st;
    set_length(&f->x, s.values, entries, 1);
    set_length(&f->x, s.indices, entries, 1);
    set_length(&f->x, s.coords, entries, s.rank);
    return HEFT_OK;
}

static heft_status resolve_tensor(heft_file *f, uint32_t t, budget *b, heft_error *err)
{
    const heft_ix_tensor_row *row = heft_ix_row(&f->x, t);
    bool is_sparse = row->layout == HEFT_SPARSE_CSR || row->layout == HEFT_SPARSE_COO;
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < row->part_count; i++)
        unknown += heft_ix_part_row_at(&f->x, row->first_part + i)->length == HEFT_UNKNOWN_LENGTH;
    if (!unknown)
        return HEFT_OK;
    if (is_sparse)
        HEFT_TRY(resolve_sparse(f, t, b, err));
    for (uint32_t i = 0; i < row->part_count; i++)
        if (heft_ix_part_row_at(&f->x, row->first_part + i)->length == HEFT_UNKNOWN_LENGTH)
            HEFT_TRY(resolve_by_decoding(f, row->first_part + i, b, err));
    return HEFT_OK;
}

heft_status heft_resolve_lengths(heft_file *f, heft_error *err)
{
    uint64_t size = f->x.file_bytes;
    budget b = { size > UINT64_MAX / MAX_RATIO ? UINT64_MAX : size * MAX_RATIO };
    b.left = b.left > MIN_BUDGET ? b.left : MIN_BUDGET;
    for (uint32_t t = 0; f->x.unknown_lengths && t < heft_ix_tensors(&f->x); t++)
        HEFT_TRY(resolve_tensor(f, t, &b, err));
    return HEFT_OK;
}

static heft_status check_length(const heft_file *f, uint32_t part, heft_error *err)
{
    const heft_ix_part_row *row = heft_ix_part_row_at(&f->x, part);
    heft_stream s;
    if (row->length != HEFT_UNKNOWN_LENGTH)
        return heft_stream_check_ratio(f, part, row->length, false, err);
    HEFT_TRY(heft_stream_start(&s, f, part, err));
    heft_stream_stop(&s);
    return heft_error_plain(err, HEFT_E_UNSUPPORTED, "the decoded length of a part is unknown");
}

heft_status heft_check_lengths(const heft_file *f, heft_error *err)
{
    for (uint32_t i = 0; i < f->x.parts.len; i++)
        if (heft_ix_part_row_at(&f->x, i)->encoding != HEFT_RAW)
            HEFT_TRY(check_length(f, i, err));
    return HEFT_OK;
}
