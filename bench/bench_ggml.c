/* ggml LIBRARY FILE TIMES - how long ggml takes to read the header of a GGUF file.  LIBRARY is a
 * libggml-base.so, or whatever library holds gguf_init_from_file(). */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "bench_measure.h"

/* As in ggml's gguf.h: with no_alloc, the header alone. */
struct gguf_init_params {
    bool no_alloc;
    void **ctx;
};

static struct {
    void *(*init)(const char *path, struct gguf_init_params how);
    int64_t (*tensors)(const void *gguf);
    void (*free)(void *gguf);
} lib;

/* A function's address from an object's, which C itself does not convert. */
static void find(void *function, void *handle, const char *name)
{
    void *found = dlsym(handle, name);
    if (!found)
        die(name, "is not in this library");
    memcpy(function, &found, sizeof found);
}

static void load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        die(path, dlerror());
    find(&lib.init, handle, "gguf_init_from_file");
    find(&lib.tensors, handle, "gguf_get_n_tensors");
    find(&lib.free, handle, "gguf_free");
}

static void run(result *r, const char *path)
{
    double begin = now();
    void *gguf = lib.init(path, (struct gguf_init_params){ .no_alloc = true });
    r->seconds = now() - begin;
    if (!gguf)
        die(path, "ggml does not read it");
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
