/* blocks LIBRARY TYPE MIB TIMES - measures the decoding of a block type to f32, MIB MiB of f32, on
 * a single thread: by heft_dtype_cast() and by ggml.  LIBRARY is libggml-base.so, or a library with
 * ggml_get_type_traits().  Prints a line per run: the seconds of processor time of Heft and of
 * ggml. */
#include <ctype.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/heft.h>

#include "bench_measure.h"

/* Declared as in ggml's ggml.h. */
struct ggml_type_traits {
    const char *type_name;
    int64_t blck_size, blck_size_interleave;
    size_t type_size;
    bool is_quantized;
    void (*to_float)(const void *from, float *to, int64_t count);
};
typedef const struct ggml_type_traits *traits_function(int type);

static bool is_same_name(const char *a, const char *b)
{
    while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) {
        a++;
        b++;
    }
    return !*a && !*b;
}

static const struct ggml_type_traits *find_traits(const char *library, const char *name)
{
    enum { TYPES = 64 };
    traits_function *traits_of;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *found = handle ? dlsym(handle, "ggml_get_type_traits") : NULL;
    if (!found)
        die(library, dlerror());
    memcpy(&traits_of, &found, sizeof found);
    for (int i = 0; i < TYPES; i++) {
        const struct ggml_type_traits *t = traits_of(i);
        if (t->type_name && t->to_float && is_same_name(t->type_name, name))
            return t;
    }
    die(name, "is no block type of this library");
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        die("blocks", "LIBRARY TYPE MIB TIMES");
    const struct ggml_type_traits *theirs = find_traits(argv[1], argv[2]);
    heft_dtype type = heft_dtype_find(heft_str_from(argv[2]));
    if (!type || heft_dtype_get(type)->block_bytes != theirs->type_size)
        die(argv[2], "is another type in heft");
    size_t count = (strtoul(argv[3], NULL, 10) << 20) / sizeof(float);
    size_t bytes = count / (size_t)theirs->blck_size * theirs->type_size;
    uint8_t *src = malloc(bytes);
    float *dst = malloc(count * sizeof *dst);
    if (!src || !dst)
        die("blocks", "no memory");
    for (size_t i = 0; i < bytes; i++)
        src[i] = (uint8_t)(i * 2654435761u >> 13) & 0x3F; /* scales are finite */
    memset(dst, 0, count * sizeof *dst);
    for (int i = atoi(argv[4]); i > 0; i--) {
        double start = processor_time();
        if (!heft_dtype_cast(dst, HEFT_F32, src, type, count))
            die(argv[2], "cannot be cast");
        keep(dst);
        double ours = processor_time() - start;
        start = processor_time();
        theirs->to_float(src, dst, (int64_t)count);
        keep(dst);
        printf("%.9f %.9f\n", ours, processor_time() - start);
    }
    free(src);
    free(dst);
    return 0;
}
