/* fuzz.h - helpers that the fuzz targets share. */
#ifndef HEFT_FUZZ_H
#define HEFT_FUZZ_H
#include <stdint.h>

#include <heft/heft_ext.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Abort if an invariant does not hold. */
void fuzz_require(bool holds);
/* Keep the compiler from removing the computation of v. */
void fuzz_use(uint64_t v);
heft_status fuzz_open(heft_file **out, const void *data, size_t size, const heft_open_options *opt);

typedef struct fuzz_bytes {
    uint8_t *ptr;
    size_t len, cap;
} fuzz_bytes;
/* Open a sink that appends to *to; the caller frees to->p. */
heft_sink *fuzz_sink(fuzz_bytes *to);

#endif
