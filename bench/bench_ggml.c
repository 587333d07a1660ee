/* ggml LIBRARY FILE TIMES - measures ggml reading the header of a GGUF file.  LIBRARY is
 * libggml-base.so, or a library that exports gguf_init_from_file(). */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "bench_measure.h"

/* Declared as in ggml's gguf.h; no_alloc: read the header only. */
struct gguf_init_params {
    bool no_alloc;
    void **ctx;
};

static struct {
    void *(*init)(const char *path, struct gguf_init_params how);
    int64_t (*tensors)(const void *gguf);
    void (*free)(void *gguf);
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
    find_function(&lib.free, handle, "gguf_free");
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
    if (argc != 4) {
        fputs("usage: ggml LIBRARY FILE TIMES\n", stderr);
        return 2;
    }
    load(argv[1]);
    measure(run, argv[2], argv[3]);
    return 0;
}
