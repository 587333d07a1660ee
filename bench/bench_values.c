/* bench_values.c - numbers for the benchmarks of casts. */
#include "bench_values.h"

#include "bench_measure.h"

size_t bytes_of_elements(heft_dtype t, size_t count)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    return count / d->block_elems * d->block_bytes;
}

void fill_weights(uint8_t *src, heft_dtype t, size_t count)
{
    enum { PATTERN = 1 << 12 };
    float pattern[PATTERN];
    float scale = heft_dtype_get(t)->kind == HEFT_DTYPE_FLOAT ? 0.125F : 200;
    uint32_t r = 1;
    for (int i = 0; i < PATTERN; i++) {
        r = r * 1664525 + 1013904223;
        pattern[i] = ((float)(r >> 8) / (1 << 24) - 0.5F) * scale;
    }
    for (size_t i = 0; i < count; i += PATTERN)
        if (!heft_dtype_cast(src + bytes_of_elements(t, i), t, pattern, HEFT_F32, PATTERN))
            die("cast", "there is no such conversion");
}
