/* standalone.c - a fuzz target without a fuzzer: every file as it is, then damaged at random, always
 * in the same way.
 *
 *   fuzz_NAME ROUNDS FILE...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { LARGEST = 256 << 10, CHANGES = 4 };

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Changes a few bytes, mostly near the front, where the numbers are; now and then cuts the file. */
static size_t damage(uint8_t *data, size_t size, uint64_t *x)
{
    for (uint64_t n = 1 + next_random(x) % CHANGES; n && size; n--) {
        size_t reach = next_random(x) % 4 && size > 512 ? 512 : size;
        uint8_t *at = data + next_random(x) % reach;
        uint64_t bits = next_random(x) % 2 ? next_random(x) : *at ^ 1u << next_random(x) % 8;
        *at = (uint8_t)bits;
    }
    return next_random(x) % 8 ? size : next_random(x) % (size + 1);
}

/* A copy that is exactly as long as it claims, so that reading past it is noticed. */
static void try_bytes(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + !size);
    fuzz_demand(copy);
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static bool try_file(const char *path, unsigned long rounds)
{
    static uint8_t original[LARGEST], damaged[LARGEST];
    uint64_t x = 88172645463325252u;
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    size_t size = fread(original, 1, sizeof original, file);
    fclose(file);
    try_bytes(original, size);
    for (unsigned long i = 0; i < rounds; i++) {
        memcpy(damaged, original, size);
        try_bytes(damaged, damage(damaged, size, &x));
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: fuzz_NAME ROUNDS FILE...\n", stderr);
        return 2;
    }
    unsigned long rounds = strtoul(argv[1], NULL, 10);
    rounds = getenv("HEFT_TEST_FEWER") ? rounds / 4 : rounds; /* a build that takes long */
    for (int i = 2; i < argc; i++) {
        printf("%s\n", argv[i]); /* the last one printed is the one that failed */
        fflush(stdout);
        if (!try_file(argv[i], rounds))
            return 1;
    }
    return 0;
}
