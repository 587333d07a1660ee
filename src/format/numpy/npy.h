/* npy.h - arrays in NumPy's .npy format: a separate file, or a member of an .npz archive. */
#ifndef HEFT_NPY_H
#define HEFT_NPY_H
#include "format/format.h"

enum {
    HEFT_NPY_RANK = 64,  /* maximum rank in NumPy 2; NumPy 1: 32 */
    HEFT_NPY_ALIGN = 64, /* alignment of the data in files written by NumPy */
    HEFT_NPY_MAX_ALIGN = 32768
};

typedef struct heft_npy {
    heft_dtype dtype;
    bool is_big_endian, is_fortran; /* is_fortran: column-major */
    bool is_nameless;               /* the type has no name in NumPy, and dtype is what is meant */
    bool has_long;                  /* version 1 or 2: integers may end with L */
    bool is_chosen;                 /* is_nameless, and the caller has chosen dtype */
    uint64_t header;                /* bytes before the data */
    uint32_t rank;
    uint64_t dims[HEFT_NPY_RANK];
} heft_npy;

/* An array: a range of the file, the encoding, and the decoded size in bytes. */
typedef struct heft_npy_layout {
    heft_range stored;
    uint64_t content;
    heft_encoding encoding;
} heft_npy_layout;

/* Return true if the first `have` bytes of the content begin an array. */
bool heft_npy_begins(const uint8_t *p, size_t have);
/* Get the first *len bytes of the content, borrowed from the file or decoded into buf. */
heft_status heft_npy_first_bytes(const uint8_t **out, heft_window *in,
                                 const heft_npy_layout *layout, uint8_t *buf, size_t *len);
/* Read the header of an array.  The index has the memory and the caller's types. */
heft_status heft_npy_read(heft_npy *out, heft_window *in, const heft_npy_layout *layout,
                          heft_str name, heft_index *x);
/* Parse the Python literal after magic number and length: a dictionary of descr, fortran_order and
 * shape.  `choice` chooses the types of arrays without one, unless it is NULL.
 * The text is stored at file offset `at`, or decoded from the bytes that begin there: the errors of
 * a decoded text have the offset `at`. */
heft_status heft_npy_literal(heft_npy *out, heft_str text, uint64_t at, bool is_stored,
                             heft_str name, const heft_array_types *choice, heft_error *err);
/* Add a tensor for the array, with notes about data that must be byte-swapped or transposed. */
heft_status heft_npy_add(heft_index *x, const heft_npy *h, const heft_npy_layout *layout,
                         heft_str name);

/* ---- writing ---- */

/* Return true if NumPy has the element type. */
bool heft_npy_has_type(heft_dtype t);
/* Raise the alignment to NumPy's; HEFT_E_ARGUMENT if the requested alignment is too large. */
heft_status heft_npy_plan_align(heft_plan *p);
/* Report and drop a tensor that cannot be an array. */
heft_status heft_npy_plan_tensor(heft_plan *p, uint32_t tensor);
/* Emit everything before the data of a tensor; the length is a multiple of `align`. */
void heft_npy_put(heft_out *o, const heft_index *x, uint32_t tensor, uint32_t align,
                  bool is_fortran);

/* ---- shared by the reader and the writer of ---- */

enum { HEFT_NPZ_SUFFIX = 4 };
extern const char heft_npz_suffix[]; /* ".npy", the suffix of members that are arrays */

/* Return the reason why the name of a member is dangerous for unpacking into a folder, or NULL. */
const char *heft_npz_risk(heft_str name);

heft_status heft_npz_plan(heft_plan *p);
heft_status heft_npz_write_header(const heft_plan *p, heft_out *o);
heft_status heft_npz_write_record_header(const heft_plan *p, uint32_t part, heft_out *o);
heft_status heft_npz_write_trailer(const heft_plan *p, heft_out *o);

#endif
