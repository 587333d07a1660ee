/* read_array.c - reads dense tensors as another element type, except the parts of quantised
 * tensors. */
#include "core/read/sparse_read.h"
#include "scheme/refuse.h"

/* Find the tensor; *as becomes the element type of the result. */
static heft_status find(heft_dense_tensor *d, heft_dtype *as, const heft_file *f, heft_str name,
                        heft_error *err)
{
    heft_status st = heft_dense_find(d, f, name, err);
    if (st || *as == HEFT_UNTYPED || *as == d->t.dtype) {
        *as = d->t.dtype;
        return st;
    }
    return heft_refuse_cast(f, d->id, err);
}

heft_status heft_array_read(heft_array *out, const heft_file *f, heft_str name, heft_dtype as,
                            void *memory, size_t capacity, heft_error *err)
{
    heft_dense_tensor d;
    heft_error own;
    *out = (heft_array){ .data = NULL };
    err = heft_error_begin(err, &own);
    heft_status st = find(&d, &as, f, name, err);
    if (!st)
        st = heft_dense_read(out, &d, as, memory, capacity, err);
    return heft_error_end(err, st);
}

heft_status heft_array_read_slice(void *buf, size_t capacity, const heft_file *f, heft_str name,
                                  const heft_slice *axes, heft_dtype as, heft_error *err)
{
    heft_dense_tensor d;
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_status st = find(&d, &as, f, name, err);
    if (!st)
        st = heft_dense_read_slice(buf, capacity, &d, axes, as, err);
    return heft_error_end(err, st);
}
