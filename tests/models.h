/* models.h - model files for tests, generated with heft_writer. */
#ifndef MODELS_H
#define MODELS_H
#include "heft_test.h"

typedef struct test_tensor {
    const char *name;
    heft_dtype dtype;
    uint32_t rank;
    uint64_t dims[4];
} test_tensor;

/* Return a file of the format with these tensors. The bytes are pseudo-random and the same in
 * each run; bool tensors contain 0 and 1. */
heft_bytes heft_test_model(const char *format, const test_tensor *tensors, size_t count);
/* Return the name of the i-th format that this build writes, NULL past the last. Formats for a
 * single tensor are skipped. */
const char *heft_test_writable(size_t i);
/* Do the same for formats whose files are edited. */
const char *heft_test_editable(size_t i);
/* Return a file with one f32 tensor "w" of `bytes` bytes. */
heft_bytes heft_test_one(const char *format, uint64_t bytes);
/* Return heft_test_model(from, ...) converted to the format `to`; opt as for
 * heft_file_convert(). */
heft_bytes heft_test_converted(const char *from, const test_tensor *tensors, size_t count,
                               const char *to, const heft_convert_options *opt);
/* Return a file with `count` tensors of one f32 element each. */
heft_bytes heft_test_many(const char *format, uint32_t count);

#endif
