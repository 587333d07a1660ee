/* encode LIBRARY TYPE MIB TIMES [importance] - measures the encoding of rows of 4096 columns to a
 * block type, MIB MiB of f32, on a single thread: by heft_block_encode() and by ggml.  LIBRARY is
 * libggml-base.so.  Prints a line per run: the seconds of processor time of Heft, of ggml and of
 * memcpy of the f32.  Fails if the bytes differ. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/block_rows.h>

#include "bench_measure.h"

enum { COLUMNS = 4096 };

typedef size_t quantize_chunk(int type, const float *src, void *dst, int64_t start, int64_t rows,
                              int64_t columns, const float *importance);
typedef const char *type_name(int type);

typedef struct work {
    heft_dtype type;
    int ggml_type;
    quantize_chunk *theirs;
    size_t rows, row_bytes;
    float *src;
    uint8_t *ours, *expected;
    const float *importance;
} work;

/* Store the address of a symbol in a function pointer, a conversion that C does not define. */
static void find_function(void *function, void *handle, const char *name)
{
    void *found = dlsym(handle, name);
    if (!found)
        die(name, "not found in this library");
    memcpy(function, &found, sizeof found);
}

/* ggml's names have capital letters after the underscore: q4_K. */
static int find_type(void *handle, const char *name)
{
    enum { TYPES = 64 };
    type_name *name_of;
    char theirs[16];
    find_function(&name_of, handle, "ggml_type_name");
    snprintf(theirs, sizeof theirs, "%s", name);
    char *k = strstr(theirs, "_k");
    if (k)
        k[1] = 'K';
    for (int i = 0; i < TYPES; i++)
        if (name_of(i) && strcmp(name_of(i), theirs) == 0)
            return i;
    die(name, "is no type of this library");
    return -1;
}

/* Numbers like weights: sums of four uniform ones. */
static void fill(float *v, size_t n)
{
    uint32_t r = 1;
    for (size_t i = 0; i < n; i++) {
        int32_t sum = 0;
        for (int k = 0; k < 4; k++) {
            r = r * 1664525 + 1013904223;
            sum += (int32_t)(r >> 8) - (1 << 23);
        }
        v[i] = (float)sum * 0x1p-30f;
    }
}

static void measure_once(work *w)
{
    heft_error err;
    double start = processor_time();
    for (size_t i = 0; i < w->rows; i++)
        if (heft_block_encode(w->ours + i * w->row_bytes, w->row_bytes, w->type,
                              w->src + i * COLUMNS, COLUMNS, w->importance, &err))
            die("encode", err.message);
    double ours = processor_time() - start;

    start = processor_time();
    w->theirs(w->ggml_type, w->src, w->expected, 0, (int64_t)w->rows, COLUMNS, w->importance);
    double theirs = processor_time() - start;
    if (memcmp(w->ours, w->expected, w->rows * w->row_bytes) != 0)
        die("encode", "heft and ggml differ");

    float *copy = malloc(w->rows * COLUMNS * sizeof *copy);
    if (!copy)
        die("encode", "no memory");
    memset(copy, 1, w->rows * COLUMNS * sizeof *copy);
    start = processor_time();
    memcpy(copy, w->src, w->rows * COLUMNS * sizeof *copy);
    keep(copy);
    printf("%.9f %.9f %.9f\n", ours, theirs, processor_time() - start);
    free(copy);
}

int main(int argc, char **argv)
{
    if (argc < 5)
        die("encode", "LIBRARY TYPE MIB TIMES [importance]");
    void *handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        die(argv[1], dlerror());
    work w = { .type = heft_dtype_find(heft_str_from(argv[2])) };
    if (!heft_block_can_encode(w.type))
        die(argv[2], "is not encoded by heft");
    find_function(&w.theirs, handle, "ggml_quantize_chunk");
    w.ggml_type = find_type(handle, argv[2]);

    const heft_dtype_info *d = heft_dtype_get(w.type);
    w.rows = (strtoul(argv[3], NULL, 10) << 20) / sizeof(float) / COLUMNS;
    w.row_bytes = (size_t)COLUMNS / d->block_elems * d->block_bytes;
    w.src = malloc(w.rows * COLUMNS * sizeof *w.src);
    w.ours = malloc(w.rows * w.row_bytes);
    w.expected = malloc(w.rows * w.row_bytes);
    float *importance = malloc(COLUMNS * sizeof *importance);
    if (!w.src || !w.ours || !w.expected || !importance)
        die("encode", "no memory");
    fill(w.src, w.rows * COLUMNS);
    for (size_t i = 0; i < COLUMNS; i++)
        importance[i] = w.src[i] * w.src[i];
    w.importance = argc > 5 ? importance : NULL;

    for (int i = atoi(argv[4]); i > 0; i--)
        measure_once(&w);
    free(w.src);
    free(w.ours);
    free(w.expected);
    free(importance);
    return 0;
}
