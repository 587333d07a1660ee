/* layout_converter.h - produce a part of a tensor in a layout that differs from the stored
 * layout, byte by byte in order: the dense data of a sparse tensor, or the parts of a sparse
 * tensor that is stored dense. */
#ifndef HEFT_LAYOUT_CONVERTER_H
#define HEFT_LAYOUT_CONVERTER_H
#include "core/read/sparse_read.h"

typedef enum heft_layout_target {
    HEFT_TARGET_UNCHANGED, /* as stored */
    HEFT_TARGET_DENSE,     /* densify a sparse tensor that passed heft_sparse_check() */
    HEFT_TARGET_VALUES,    /* sparsify a dense tensor: values of elements with any bit set */
    HEFT_TARGET_COLUMNS,
    HEFT_TARGET_ROWS,
    HEFT_TARGET_COORDS
} heft_layout_target;

typedef struct heft_nonzero_scan { /* the nonzero elements of dense data */
    heft_stream s;
    uint8_t *buf; /* NULL: not open */
    uint32_t size, at, have;
    uint64_t left;     /* bytes not yet read into buf */
    uint64_t position; /* index of the element at `at` */
    uint64_t found;    /* nonzero elements passed so far */
} heft_nonzero_scan;

typedef struct heft_layout_converter {
    const heft_file *f;
    uint32_t tensor, part;
    heft_layout_target layout_target;
    /* sparse to dense */
    heft_entries entries;
    /* `pending`: the entry read last belongs to a later block.  `ascends`: no entry belongs to
     * an earlier block. */
    bool pending, ascends;
    uint8_t *block;
    uint64_t begin, end,
        block_elements; /* the block as a range of elements; the elements of a full block */
    uint64_t elements;  /* elements of the tensor */
    /* dense to sparse */
    heft_nonzero_scan scan;
    bool done;      /* no nonzero element is left */
    uint64_t row;   /* number of the next row pointer */
    uint64_t count; /* nonzero elements, as counted by heft_count_nonzero() */
    uint32_t dim;
    /* Output: bytes [at, have) of the block, or of item. */
    uint64_t at, have;
    uint8_t item[HEFT_SPARSE_VALUE];
} heft_layout_converter;

/* part: the values, or the dense data; nonzero: the result of heft_count_nonzero() for dense
 * data.  HEFT_E_IO: the data have changed since then. */
heft_status heft_layout_converter_open(heft_layout_converter *m, const heft_file *f,
                                       uint32_t tensor, uint32_t part,
                                       heft_layout_target layout_target, uint64_t nonzero,
                                       heft_error *err);
heft_status heft_layout_converter_read(heft_layout_converter *m, void *buf, size_t len,
                                       heft_error *err);
void heft_layout_converter_close(heft_layout_converter *m); /* a zeroed struct is harmless */

/* Count the elements of dense data that have any bit set. */
heft_status heft_count_nonzero(uint64_t *out, const heft_file *f, uint32_t part, heft_error *err);

#endif
