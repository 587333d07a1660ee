/* dense.h - finds dense tensors, whose only part "data" has the size that the shape says. */
#ifndef HEFT_DENSE_H
#define HEFT_DENSE_H
#include "core/read/file.h"

typedef struct heft_dense_tensor {
    const heft_file *f;
    heft_tensor t;
    uint32_t part;
    uint64_t count; /* elements */
} heft_dense_tensor;

/* Find a tensor by its name.  HEFT_E_NOTFOUND, HEFT_E_UNSUPPORTED for tensors of other layouts,
 * HEFT_E_FORMAT for a part of another size. */
heft_status heft_dense_find(heft_dense_tensor *d, const heft_file *f, heft_str name,
                            heft_error *err);

#endif
