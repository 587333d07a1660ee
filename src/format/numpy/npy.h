/* npy.h - the header of an array in NumPy's own format, which is a file by itself and a member of .npz archives. */
#ifndef HEFT_NPY_H
#define HEFT_NPY_H
#include "format/format.h"

enum {
    HEFT_NPY_RANK = 64,  /* dimensions that NumPy 2 has; NumPy 1 has 32 */
    HEFT_NPY_ALIGN = 64, /* of the data, as NumPy writes them */
    HEFT_NPY_MOST_ALIGN = 32768
};

typedef struct heft_npy {
    heft_dtype dtype;
    bool is_big_endian, is_fortran; /* the first dimension fastest */
    uint64_t header;                /* bytes before the data */
    uint32_t rank;
    uint64_t dims[HEFT_NPY_RANK];
} heft_npy;

/* Where an array lies: a range of the file that decodes to so many bytes. */
typedef struct heft_npy_layout {
    heft_range stored;
    uint64_t content;
    heft_encoding encoding;
} heft_npy_layout;

/* Whether the first bytes of a content, `have` of them at hand, are those of an array. */
bool heft_npy_begins(const uint8_t *p, size_t have);
/* The first *len bytes of the content: in place, or decoded into buf. */
heft_status heft_npy_first_bytes(const uint8_t **out, heft_window *in, const heft_npy_layout *place,
                                 uint8_t *buf, size_t *len);
/* The header there. */
heft_status heft_npy_read(heft_npy *out, heft_window *in, const heft_npy_layout *place,
                          heft_str name, heft_arena *arena);
/* The literal behind magic number and length: a dictionary of descr, fortran_order and shape, of the Python
 * language.  It begins at byte `at` of the file. */
heft_status heft_npy_literal(heft_npy *out, heft_str text, uint64_t at, heft_str name,
                             heft_error *err);
/* A tensor of that header, with notes on what has to be turned. */
heft_status heft_npy_add(heft_index *x, const heft_npy *h, const heft_npy_layout *place,
                         heft_str name);

/* ---- writing ---- */

/* Whether NumPy has that type. */
bool heft_npy_has_type(heft_dtype t);
/* Raises the alignment to NumPy's; HEFT_E_ARGUMENT: it is too large. */
heft_status heft_npy_plan_align(heft_plan *p);
/* Reports why a tensor cannot be an array, and drops it then. */
heft_status heft_npy_plan_tensor(heft_plan *p, uint32_t tensor);
/* Everything before the data of such a tensor; as many bytes as a multiple of align. */
void heft_npy_put(heft_out *o, const heft_index *x, uint32_t tensor, uint32_t align,
                  bool is_fortran);

#endif
