/* ggml LIBRARY open FILE TIMES - measures ggml reading the header of a GGUF file.
 * ggml LIBRARY load FILE - measures ggml reading all tensors into new memory; prints seconds and
 *     bytes.
 * LIBRARY is libggml-base.so, or a library that exports gguf_init_from_file(). */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "bench_measure.h"

/* Declared as in ggml's gguf.h; no_alloc: read the header only.  ctx: gets the tensors. */
struct gguf_init_params {
    bool no_alloc;
    void **ctx;
};

static struct {
    void *(*init)(const char *path, struct gguf_init_params how);
    int64_t (*tensors)(const void *gguf);
    size_t (*bytes)(const void *gguf, int64_t tensor);
    void (*free)(void *gguf);
    void (*free_tensors)(void *ctx);
} lib;

/* Store the address of a symbol in a function pointer, a conversion that C does not define. */
static void find_function(void *function, void *handle, const char *name)
{
    void *found = dlsym(handle, name);
    if (!found)
        die(name, "not found in this library");
    memcpy(function, &found, sizeof found);
}

static void load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        die(path, dlerror());
    find_function(&lib.init, handle, "gguf_init_from_file");
    find_function(&lib.tensors, handle, "gguf_get_n_tensors");
    find_function(&lib.bytes, handle, "gguf_get_tensor_size");
    find_function(&lib.free, handle, "gguf_free");
    find_function(&lib.free_tensors, handle, "ggml_free");
}

static void load_tensors(const char *path)
{
    void *tensors = NULL;
    unsigned long long bytes = 0;
    double begin = now();
    void *gguf = lib.init(path, (struct gguf_init_params){ .ctx = &tensors });
    double seconds = now() - begin;
    if (!gguf)
        die(path, "ggml cannot read the file");
    for (int64_t i = 0, count = lib.tensors(gguf); i < count; i++)
        bytes += lib.bytes(gguf, i);
    printf("%.9f %llu\n", seconds, bytes);
    lib.free(gguf);
    lib.free_tensors(tensors);
}

static void run(result *r, const char *path)
{
    double begin = now();
    void *gguf = lib.init(path, (struct gguf_init_params){ .no_alloc = true });
    r->seconds = now() - begin;
    if (!gguf)
        die(path, "ggml cannot read the file");
    r->tensors = (uint32_t)lib.tensors(gguf);
    note_memory(r);
    lib.free(gguf);
}

int main(int argc, char **argv)
{
    bool opens = argc == 5 && !strcmp(argv[2], "open"),
         loads = argc == 4 && !strcmp(argv[2], "load");
    if (!opens && !loads) {
        fputs("usage: ggml LIBRARY open FILE TIMES | load FILE\n", stderr);
        return 2;
    }
    load(argv[1]);
    if (opens)
        measure(run, argv[3], argv[4]);
    else
        load_tensors(argv[3]);
    return 0;
}
