/* json FILE TIMES - measures jansson decoding the header of a safetensors file. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "bench_measure.h"

enum { LENGTH_BYTES = 8 }; /* the length field before the header */

static void run(result *r, const char *path)
{
    uint64_t n;
    double begin = now();
    mapping m = map_file(path);
    memcpy(&n, m.ptr, sizeof n);
    json_t *tree = json_loadb((const char *)m.ptr + LENGTH_BYTES, (size_t)n, JSON_REJECT_DUPLICATES,
                              NULL);
    r->seconds = now() - begin;
    if (!tree)
        die(path, "jansson cannot decode the header");
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
