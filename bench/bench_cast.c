/* cast FROM TO MIB TIMES - measures the cast of MIB MiB of elements against a copy of the same
 * bytes. Prints the seconds of both, one line per run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/heft.h>

#include "bench_measure.h"

static heft_dtype type_of(const char *name)
{
    heft_dtype t = heft_dtype_find(heft_str_from(name));
    if (!t || heft_dtype_get(t)->block_elems != 1)
        die(name, "is not a plain element type");
    return t;
}

/* Fill with numbers similar to weights: small, positive and negative. */
static void fill(uint8_t *src, heft_dtype t, size_t count)
{
    enum { PATTERN = 1 << 12 };
    float pattern[PATTERN];
    size_t size = heft_dtype_get(t)->block_bytes;
    uint32_t r = 1;
    for (int i = 0; i < PATTERN; i++) {
        r = r * 1664525 + 1013904223;
        pattern[i] = ((float)(r >> 8) / (1 << 24) - 0.5F) / 8;
    }
    for (size_t i = 0; i < count; i += PATTERN) {
        size_t n = count - i < PATTERN ? count - i : PATTERN;
        if (!heft_dtype_cast(src + i * size, t, pattern, HEFT_F32, n))
            die("cast", "there is no such conversion");
    }
}

int main(int argc, char **argv)
{
    if (argc != 5)
        die("cast", "FROM TO MIB TIMES");
    heft_dtype from = type_of(argv[1]), to = type_of(argv[2]);
    size_t bytes = strtoul(argv[3], NULL, 10) << 20;
    size_t size = heft_dtype_get(from)->block_bytes, count = bytes / size;
    uint8_t *src = malloc(bytes), *dst = malloc(bytes > 8 * count ? bytes : 8 * count);
    if (!src || !dst)
        die("cast", "no memory");
    fill(src, from, count);
    memset(dst, 1, bytes);
    for (int i = atoi(argv[4]); i > 0; i--) {
        double start = now();
        if (!heft_dtype_cast(dst, to, src, from, count))
            die("cast", "there is no such conversion");
        keep(dst);
        double cast = now() - start;
        start = now();
        memcpy(dst, src, bytes);
        keep(dst);
        printf("%.9f %.9f\n", cast, now() - start);
    }
    free(src);
    free(dst);
    return 0;
}
