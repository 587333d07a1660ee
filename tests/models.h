/* models.h - files made for tests, by the writer. */
#ifndef MODELS_H
#define MODELS_H
#include "heft_test.h"

typedef struct test_tensor {
    const char *name;
    heft_dtype dtype;
    uint32_t rank;
    uint64_t dims[4];
} test_tensor;

/* A file of that format with these tensors, their bytes drawn at random but always the same; bool
 * tensors hold 0 and 1. */
heft_bytes heft_test_model(const char *format, const test_tensor *tensors, size_t count);
/* The i-th format that this build writes, by name; NULL past the last.  Those that hold one tensor only are
 * not among them. */
const char *heft_test_writable(size_t i);
/* One f32 tensor "w" of so many bytes. */
heft_bytes heft_test_one(const char *format, uint64_t bytes);
/* heft_test_model() of `from`, converted; opt as for heft_file_convert(). */
heft_bytes heft_test_converted(const char *from, const test_tensor *tensors, size_t count,
                               const char *to, const heft_convert_options *opt);
/* So many tensors of four bytes. */
heft_bytes heft_test_many(const char *format, uint32_t count);

#endif
