/* sparse_read.h - sparse_csr and sparse_coo tensors: what their parts have to agree on, their entries one by
 * one, and the way from and to dense data, in memory that does not grow with the tensor.
 *
 *   sparse_csr   values; indices: a column for each value; indptr: for each row where its values begin,
 *                and the number of values
 *   sparse_coo   values; coords: for each dimension in turn, an index for each value
 */
#ifndef HEFT_SPARSE_READ_H
#define HEFT_SPARSE_READ_H
#include "core/read/stream.h"

/* HEFT_E_FORMAT with the first thing that is wrong with a sparse tensor's parts: rank, counts, row
 * pointers that decrease, indices that are out of bounds. */
typedef struct heft_sparse_order {
    bool has_duplicates; /* two entries are in the same place; sought among up to a few million */
    bool is_ascending;   /* sparse_csr: the columns of each row */
} heft_sparse_order;
heft_status heft_sparse_check(const heft_file *f, uint32_t tensor, heft_sparse_order *order,
                              heft_error *err);

/* The elements of a part, front to back. */
typedef struct heft_elements {
    heft_stream stream;
    uint8_t *buf;          /* NULL: not open */
    uint32_t size;         /* of an element */
    uint32_t next, filled; /* bytes of buf */
    uint64_t unread;       /* bytes that are not in buf yet */
} heft_elements;

/* count elements from element `first` on. */
heft_status heft_elements_open(heft_elements *n, const heft_file *f, uint32_t part, uint64_t first,
                               uint64_t count, heft_error *err);
/* The next one in place, until the next call. */
heft_status heft_elements_next(heft_elements *n, const uint8_t **out, heft_error *err);
/* The same of an index. */
heft_status heft_elements_index(heft_elements *n, uint64_t *out, heft_error *err);
void heft_elements_close(heft_elements *n); /* one of zeros is harmless */

/* The entries of a sparse tensor that has passed heft_sparse_check(). */
enum { HEFT_SPARSE_RANK = 32, HEFT_SPARSE_VALUE = 16 };
typedef struct heft_entries {
    const heft_file *f;
    uint32_t tensor;
    uint64_t count, consumed;                /* entries */
    uint64_t row, row_end;                   /* sparse_csr: where the one to come is */
    heft_elements indices[HEFT_SPARSE_RANK]; /* sparse_csr: columns, row pointers */
    uint32_t index_count;
    heft_elements values;
    uint64_t position; /* of the entry taken last, counted in elements of the dense tensor */
    _Alignas(HEFT_SPARSE_VALUE) uint8_t value[HEFT_SPARSE_VALUE];
} heft_entries;

heft_status heft_entries_open(heft_entries *e, const heft_file *f, uint32_t tensor,
                              heft_error *err);
/* The next one; taken < count. */
heft_status heft_entries_next(heft_entries *e, heft_error *err);
void heft_entries_close(heft_entries *e);

#endif
