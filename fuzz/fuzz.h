/* fuzz.h - what the fuzz targets share. */
#ifndef HEFT_FUZZ_H
#define HEFT_FUZZ_H
#include <stdint.h>

#include <heft/heft_ext.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts when something does not hold that always should. */
void fuzz_demand(bool holds);
/* Keeps the compiler from leaving out what led to v. */
void fuzz_use(uint64_t v);
heft_status fuzz_open(heft_file **out, const void *data, size_t size, const heft_open_options *opt);

typedef struct fuzz_bytes {
    uint8_t *ptr;
    size_t len, cap;
} fuzz_bytes;
/* A sink that appends to *to, whose memory is the caller's to free. */
heft_sink *fuzz_sink(fuzz_bytes *to);

#endif
