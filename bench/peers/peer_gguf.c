/* peer-gguf open PATH TIMES - measures ggml reading the header of a GGUF file; prints seconds and
 *     tensors, a line per run.
 * peer-gguf load PATH - also reads all tensors into new memory; prints seconds and bytes.
 * docs/performance.md says how to build this program against a checkout of ggml. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ggml.h>
#include <gguf.h>

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static unsigned long long bytes_in(const struct gguf_context *gguf)
{
    unsigned long long bytes = 0;
    for (int64_t i = 0, count = gguf_get_n_tensors(gguf); i < count; i++)
        bytes += gguf_get_tensor_size(gguf, i);
    return bytes;
}

/* Read the file once and print a line; return false if ggml cannot read the file. */
static bool run(const char *path, bool load)
{
    struct ggml_context *ctx = NULL;
    struct gguf_init_params how = { .no_alloc = !load, .ctx = load ? &ctx : NULL };
    double begin = now();
    struct gguf_context *gguf = gguf_init_from_file(path, how);
    double took = now() - begin;
    if (!gguf) {
        fprintf(stderr, "%s: ggml cannot read the file\n", path);
        return false;
    }
    printf("%.9f %llu\n", took,
           load ? bytes_in(gguf) : (unsigned long long)gguf_get_n_tensors(gguf));
    gguf_free(gguf);
    ggml_free(ctx);
    return true;
}

int main(int argc, char **argv)
{
    bool load = argc == 3 && !strcmp(argv[1], "load"), open = argc == 4 && !strcmp(argv[1], "open");
    if (!load && !open) {
        fputs("usage: peer-gguf open PATH TIMES | load PATH\n", stderr);
        return 2;
    }
    for (unsigned long left = open ? strtoul(argv[3], NULL, 10) : 1; left; left--)
        if (!run(argv[2], load))
            return 1;
    return 0;
}
