/* sparse_input.h - sparse tensors that come in pieces: what they are made of, and their indices as they come.
 *
 * Every index is looked at once.  Nothing is kept of those that were, unless the format wants the columns of a row to
 * ascend or entries to be in different places.  Then sparse_csr takes a number for each row that has entries, whether
 * indptr comes before indices or after, and sparse_coo compares up to a few million entries.
 */
#ifndef HEFT_SPARSE_INPUT_H
#define HEFT_SPARSE_INPUT_H
#include "core/read/indices.h"

enum { HEFT_SPARSE_PARTS = 3 };

typedef struct heft_sparse_spec { /* a sparse tensor that was declared */
    heft_str name;
    const uint64_t *dims;
    uint32_t rank, first_part, part_count;
    uint32_t indices,
        indptr; /* which of its parts; of sparse_coo, indices are the coords; HEFT_NONE */
    heft_layout layout;
    bool is_strict; /* ascending columns, no two entries in one place */
    uint64_t entries;
    heft_dtype types[HEFT_SPARSE_PARTS]; /* that the caller's bytes have, by part */
} heft_sparse_spec;

/* Checks what is declared of a sparse tensor: rank, components, types, counts.  HEFT_E_ARGUMENT.  Name and shape stay
 * lent by the declaration. */
heft_status heft_sparse_declare(heft_sparse_spec *out, const heft_tensor_spec *s, heft_error *err);

typedef struct heft_sparse_input { /* how far the indices of one tensor have come */
    const heft_sparse_spec *spec;
    const heft_allocator *al;
    uint32_t part;     /* of the spec's, the one that comes */
    uint64_t at, last; /* element of that part which comes next, the number before it */
    uint64_t entry;    /* sparse_coo: the entry and the dimension that come next */
    uint32_t dim;
    bool has_indices, has_pointers; /* came as a whole */
    heft_memory mem;
    heft_vec breaks; /* sparse_csr, strict: where rows begin, or where columns do not ascend */
    uint32_t next;   /* of these */
    heft_positions places;
    uint8_t carry[8]; /* the first bytes of an element whose others are still to come */
    uint32_t carried;
} heft_sparse_input;

void heft_sparse_begin(heft_sparse_input *f, const heft_sparse_spec *s, const heft_allocator *al);
/* Whether a part of the tensor, by its number among them, is one of indices. */
bool heft_sparse_is_index(const heft_sparse_spec *s, uint32_t part);
/* The next part, from its first element on. */
heft_status heft_sparse_begin_part(heft_sparse_input *f, uint32_t part, heft_error *err);
/* Takes bytes of an index part: at most `most` whole elements, which are checked.  *count of them are in out. */
heft_status heft_sparse_take(heft_sparse_input *f, const uint8_t **data, size_t *len, uint64_t *out,
                             uint32_t most, uint32_t *count, heft_error *err);
/* Once a part came as a whole. */
heft_status heft_sparse_end_part(heft_sparse_input *f, heft_error *err);
void heft_sparse_end(heft_sparse_input *f); /* one of zeros is harmless */

#endif
