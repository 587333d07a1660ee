/* sparse_input.h - check sparse tensors that arrive in pieces: the declaration, then the indices
 * on arrival.
 *
 * Each index is read once and not kept, unless the format requires ascending columns in each row
 * or distinct entries. Then sparse_csr keeps a number for each row with entries, whether indptr
 * comes before indices or after, and sparse_coo compares up to a few million entries. */
#ifndef HEFT_SPARSE_INPUT_H
#define HEFT_SPARSE_INPUT_H
#include <heft/write.h>

#include "core/read/sparse_read.h"

enum { HEFT_SPARSE_PARTS = 3 };

typedef struct heft_sparse_spec { /* a declared sparse tensor */
    heft_str name;
    const uint64_t *dims;
    uint32_t rank, first_part, part_count;
    /* Positions of the index parts among the tensor's parts, or HEFT_NONE; the coords of
     * sparse_coo are `indices`. */
    uint32_t indices, indptr;
    heft_layout layout;
    bool is_strict; /* columns of a row must ascend, no entry may occur twice */
    uint64_t entries;
    heft_dtype types[HEFT_SPARSE_PARTS]; /* declared element types, by part */
} heft_sparse_spec;

/* Check the rank, components, types and counts of a declared sparse tensor.  HEFT_E_ARGUMENT:
 * not valid.  Name and shape are borrowed from the declaration. */
heft_status heft_sparse_declare(heft_sparse_spec *out, const heft_tensor_spec *s, heft_error *err);

/* Progress through the indices of a tensor. */
typedef struct heft_sparse_input {
    const heft_sparse_spec *spec;
    const heft_allocator *al;
    uint32_t part;     /* current part, by position in the tensor */
    uint64_t at, last; /* next element of the part, and the previous number */
    uint64_t entry;    /* sparse_coo: next entry and dimension */
    uint32_t dim;
    bool has_indices, has_pointers; /* the whole component was received */
    heft_memory mem;
    heft_vec breaks; /* sparse_csr, strict: where rows begin, or where columns do not ascend */
    uint32_t next;   /* index of the next break */
    heft_positions positions;
    uint8_t carry[8]; /* first bytes of an incomplete element */
    uint32_t carried;
} heft_sparse_input;

void heft_sparse_begin(heft_sparse_input *f, const heft_sparse_spec *s, const heft_allocator *al);
/* Return true if a part of the tensor, by position, holds indices. */
bool heft_sparse_is_index(const heft_sparse_spec *s, uint32_t part);
/* Begin the next part. */
heft_status heft_sparse_begin_part(heft_sparse_input *f, uint32_t part, heft_error *err);
/* Check up to `max` whole elements of an index part and store them in out; *count: how many.
 * Advances *data and *len. */
heft_status heft_sparse_take(heft_sparse_input *f, const uint8_t **data, size_t *len, uint64_t *out,
                             uint32_t max, uint32_t *count, heft_error *err);
/* Finish a part that was received completely. */
heft_status heft_sparse_end_part(heft_sparse_input *f, heft_error *err);
void heft_sparse_end(heft_sparse_input *f); /* a zeroed struct is harmless */

#endif
