/* dense.h - finds dense tensors, whose only part "data" has the size that the shape says. */
#ifndef HEFT_DENSE_H
#define HEFT_DENSE_H
#include "core/read/file.h"

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
