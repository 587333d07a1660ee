/* cbor FILE TIMES - measures libcbor decoding the manifest of a Burnpack or zTensor file. */
#include <stdio.h>
#include <string.h>

#include <cbor.h>

#include "bench_measure.h"

typedef struct manifest {
    const uint8_t *ptr;
    uint64_t len;
} manifest;

static uint64_t number(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    while (bytes--)
        v = v << 8 | p[bytes];
    return v;
}

/* Find the manifest.  Burnpack: after the header, which contains the length.  zTensor, by
 * version: before the last 8 bytes, which contain the length; before the last 16 bytes, which
 * end with a magic number; or at the offset in the 40-byte footer. */
static manifest find_manifest(mapping m, const char *path)
{
    const uint8_t *end = m.ptr + m.len;
    manifest found = { NULL, 0 };
    if (m.len > 10 && !memcmp(m.ptr, "NRUB", 4))
        found = (manifest){ m.ptr + 10, number(m.ptr + 6, 4) };
    else if (m.len > 48 && !memcmp(m.ptr, "\x89ZT2", 4))
        found = (manifest){ m.ptr + number(end - 40, 8), number(end - 32, 8) };
    else if (m.len > 24 && !memcmp(end - 8, "ZTEN1000", 8))
        found = (manifest){ end - 16 - number(end - 16, 8), number(end - 16, 8) };
    else if (m.len > 16 && !memcmp(m.ptr, "ZTEN", 4))
        found = (manifest){ end - 8 - number(end - 8, 8), number(end - 8, 8) };
    if (!found.ptr || found.ptr < m.ptr || found.len > (uint64_t)(end - found.ptr))
        die(path, "contains no manifest");
    return found;
}

static void run(result *r, const char *path)
{
    struct cbor_load_result loaded;
    double begin = now();
    mapping m = map_file(path);
    manifest at = find_manifest(m, path);
    cbor_item_t *tree = cbor_load(at.ptr, (size_t)at.len, &loaded);
    r->seconds = now() - begin;
    if (!tree)
        die(path, "libcbor cannot decode the manifest");
    r->tensors = 0;
    note_memory(r);
    cbor_decref(&tree);
    unmap_file(m);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: cbor FILE TIMES\n", stderr);
        return 2;
    }
    measure(run, argv[1], argv[2]);
    return 0;
}
