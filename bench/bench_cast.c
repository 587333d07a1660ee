/* cast FROM TO MIB TIMES - measures a cast against a copy of as many bytes as the larger side has,
 * MIB MiB.  Prints the seconds of processor time of both, a line per run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/heft.h>

#include "bench_measure.h"
#include "bench_values.h"

static heft_dtype type_of(const char *name)
{
    heft_dtype t = heft_dtype_find(heft_str_from(name));
    if (!t || !heft_dtype_can_cast(t, HEFT_F32))
        die(name, "is not an element type that can be cast to");
    return t;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        die("cast", "FROM TO MIB TIMES");
    heft_dtype from = type_of(argv[1]), to = type_of(argv[2]);
    size_t bytes = strtoul(argv[3], NULL, 10) << 20;
    size_t most = bytes_of_elements(from, 8) > bytes_of_elements(to, 8) ? bytes_of_elements(from, 8)
                                                                        : bytes_of_elements(to, 8);
    size_t count = bytes / most * 8;
    uint8_t *src = malloc(bytes), *dst = malloc(bytes);
    if (!src || !dst)
        die("cast", "no memory");
    memset(src, 1, bytes);
    memset(dst, 1, bytes);
    fill_weights(src, from, count);
    for (int i = atoi(argv[4]); i > 0; i--) {
        double start = processor_time();
        if (!heft_dtype_cast(dst, to, src, from, count))
            die("cast", "there is no such conversion");
        keep(dst);
        double cast = processor_time() - start;
        start = processor_time();
        memcpy(dst, src, bytes);
        keep(dst);
        printf("%.9f %.9f\n", cast, processor_time() - start);
    }
    free(src);
    free(dst);
    return 0;
}
