/* layout_converter.h - the parts of a tensor in another layout than the one it is stored in, byte by byte from the
 * first to the last: a sparse tensor's dense data, or the parts of a sparse tensor that is stored dense. */
#ifndef HEFT_LAYOUT_CONVERTER_H
#define HEFT_LAYOUT_CONVERTER_H
#include "core/read/sparse_read.h"

typedef enum heft_layout_target {
    HEFT_TARGET_UNCHANGED, /* as it is stored */
    HEFT_TARGET_DENSE,     /* from a tensor that has passed heft_sparse_check() */
    HEFT_TARGET_VALUES,    /* from a dense one: what is not all zero bits */
    HEFT_TARGET_COLUMNS,
    HEFT_TARGET_ROWS,
    HEFT_TARGET_COORDS
} heft_layout_target;

typedef struct heft_nonzero_scan { /* the elements of dense data that are not zero */
    heft_stream s;
    uint8_t *buf; /* NULL: not open */
    uint32_t size, at, have;
    uint64_t left;  /* bytes that are not in buf yet */
    uint64_t place; /* of the element at `at` */
    uint64_t found; /* elements found so far */
} heft_nonzero_scan;

typedef struct heft_layout_converter {
    const heft_file *f;
    uint32_t tensor, part;
    heft_layout_target making;
    /* of dense data */
    heft_entries entries;
    bool pending, ascends; /* an entry waits; its block is never one that is done */
    uint8_t *block;
    uint64_t begin, end, block_elements; /* of the block, in elements */
    uint64_t elements;                   /* of the tensor */
    /* from dense data */
    heft_nonzero_scan scan;
    bool done;      /* no element is left */
    uint64_t row;   /* row pointers: the next one */
    uint64_t count; /* elements that are not zero, as heft_count_filled() found them */
    uint32_t dim;
    /* what is handed out: bytes [at, have) of the block, or of item */
    uint64_t at, have;
    uint8_t item[HEFT_SPARSE_VALUE];
} heft_layout_converter;

/* part: of the values, or of the dense data; filled: what heft_count_filled() found in the latter.  Data
 * that have changed since are HEFT_E_IO. */
heft_status heft_layout_converter_open(heft_layout_converter *m, const heft_file *f,
                                       uint32_t tensor, uint32_t part, heft_layout_target making,
                                       uint64_t filled, heft_error *err);
heft_status heft_layout_converter_read(heft_layout_converter *m, void *buf, size_t len,
                                       heft_error *err);
void heft_layout_converter_close(heft_layout_converter *m); /* one of zeros is harmless */

/* How many elements of dense data are not zero. */
heft_status heft_count_filled(uint64_t *out, const heft_file *f, uint32_t part, heft_error *err);

#endif
