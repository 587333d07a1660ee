/* sparse_read.h - sparse_csr and sparse_coo tensors: checks of their parts, and iteration over
 * their entries, in memory that does not grow with the tensor.
 *
 *   sparse_csr   values; indices: the column of each value; indptr: for each row the number of its
 *                first value, then the number of values
 *   sparse_coo   values; coords: for each dimension in turn, an index for each value
 */
#ifndef HEFT_SPARSE_READ_H
#define HEFT_SPARSE_READ_H
#include "core/read/file.h"
#include "core/read/stream.h"

typedef struct heft_sparse_order {
    bool has_duplicates; /* two entries have the same indices; searched among a few million */
    bool is_ascending;   /* sparse_csr: columns ascend within each row */
    heft_range where;    /* bytes of the first fault, or of the indices; HEFT_NOWHERE: unknown */
} heft_sparse_order;
/* Return HEFT_E_FORMAT for the first fault in a sparse tensor's parts: rank, counts, row pointers
 * that decrease, indices out of bounds.  order->where has a global offset; *err has a local offset
 * and names tensor and shard, or has no place if the error becomes a finding. */
heft_status heft_sparse_check(const heft_file *f, uint32_t tensor, bool is_for_finding,
                              heft_sparse_order *order, heft_error *err);

/* Sequential reader of the elements of a part. */
typedef struct heft_elements {
    heft_stream stream;
    uint8_t *buf;          /* NULL: not open */
    uint32_t size;         /* bytes of an element */
    uint32_t next, filled; /* offset in buf of the next element; bytes in buf */
    uint64_t unread;       /* bytes not yet in buf */
} heft_elements;

/* Set *out to the next element, valid until the next call. */
heft_status heft_elements_next(heft_elements *n, const uint8_t **out, heft_error *err);
/* Read the next element as an index. */
heft_status heft_elements_index(heft_elements *n, uint64_t *out, heft_error *err);
void heft_elements_close(heft_elements *n); /* a zeroed n is harmless */

/* Iterator over the entries of a sparse tensor that has passed heft_sparse_check(). */
enum { HEFT_SPARSE_RANK = 32, HEFT_SPARSE_VALUE = 16 };
typedef struct heft_entries {
    const heft_file *f;
    uint32_t tensor;
    uint64_t count, consumed;
    uint64_t row, row_end; /* sparse_csr: row of the next entry, and the end of that row */
    /* sparse_csr: columns, row pointers; sparse_coo: one per dimension */
    heft_elements indices[HEFT_SPARSE_RANK];
    uint32_t index_count;
    heft_elements values;
    uint64_t position; /* row-major element number of the current entry */
    _Alignas(HEFT_SPARSE_VALUE) uint8_t value[HEFT_SPARSE_VALUE];
} heft_entries;

heft_status heft_entries_open(heft_entries *e, const heft_file *f, uint32_t tensor,
                              heft_error *err);
/* Advance to the next entry; requires consumed < count. */
heft_status heft_entries_next(heft_entries *e, heft_error *err);
void heft_entries_close(heft_entries *e);

/* ---- index numbers of sparse tensors, and the search for duplicate entries ---- */

/* Return the bytes of an index of type t, or 0 if t cannot be an index.  HEFT_UNTYPED: u64. */
uint32_t heft_index_size(heft_dtype t);
/* Read the index of type t at p.  A negative index becomes UINT64_MAX, always out of bounds. */
uint64_t heft_index_value(const uint8_t *p, heft_dtype t);

/* Row-major element numbers of a sparse tensor's entries, for up to a few million entries. */
typedef struct heft_positions {
    uint64_t *linear; /* element number by entry; NULL: duplicates are not searched */
    uint32_t *ids, *scratch, count;
} heft_positions;
/* Return false if out of memory. */
bool heft_positions_open(heft_positions *s, const heft_allocator *al, uint64_t entries,
                         const uint64_t *dims, uint32_t rank);
/* Add the index of an entry in the next dimension, of size `dim`. */
static inline void heft_positions_add(heft_positions *s, uint64_t entry, uint64_t dim,
                                      uint64_t index)
{
    if (s->linear)
        s->linear[entry] = s->linear[entry] * dim + index;
}
/* After all indices were added: return the first entry, in ascending order of element numbers, with
 * the same element number as a previous entry, or HEFT_NONE. */
uint32_t heft_positions_repeated(heft_positions *s);
/* A zeroed s is harmless. */
void heft_positions_close(heft_positions *s, const heft_allocator *al);

/* ---- finds dense tensors, whose only part "data" has the size that the shape says ---- */

typedef struct heft_dense_tensor {
    const heft_file *f;
    heft_tensor t;
    uint32_t id, part;
    uint64_t count; /* elements */
} heft_dense_tensor;

/* Find a tensor by its name.  HEFT_E_NOTFOUND, HEFT_E_UNSUPPORTED for tensors of other layouts,
 * HEFT_E_FORMAT for a part of another size. */
heft_status heft_dense_find(heft_dense_tensor *d, const heft_file *f, heft_str name,
                            heft_error *err);
/* Implement heft_array_read() and heft_array_read_slice().  dtype, as: not HEFT_UNTYPED. */
heft_status heft_dense_read(heft_array *out, const heft_dense_tensor *d, heft_dtype dtype,
                            void *memory, size_t capacity, heft_error *err);
heft_status heft_dense_read_slice(void *buf, size_t capacity, const heft_dense_tensor *d,
                                  const heft_slice *axes, heft_dtype as, heft_error *err);

#endif
