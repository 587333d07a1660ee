/* json FILE TIMES - how long jansson takes to decode the header of a safetensors file. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "bench_measure.h"

enum { LENGTH = 8 }; /* of the header's length, which stands before it */

static void run(result *r, const char *path)
{
    uint64_t n;
    double begin = now();
    mapping m = map_file(path);
    memcpy(&n, m.ptr, sizeof n);
    json_t *tree = json_loadb((const char *)m.ptr + LENGTH, (size_t)n, JSON_REJECT_DUPLICATES,
                              NULL);
    r->seconds = now() - begin;
    if (!tree)
        die(path, "jansson does not decode it");
    r->tensors = (uint32_t)json_object_size(tree);
    note_memory(r);
    json_decref(tree);
    unmap_file(m);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: json FILE TIMES\n", stderr);
        return 2;
    }
    measure(run, argv[1], argv[2]);
    return 0;
}
