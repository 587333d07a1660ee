/* standalone.c - runs a fuzz target without a fuzzer: each file unchanged, then damaged by a fixed
 * pseudo-random sequence.  Checksums of every second damaged model are repaired.
 *
 *   fuzz_NAME ROUNDS FILE...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_repair.h"

enum { MAX_FILE = 256 << 10, CHANGES = 4 };

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Change a few bytes, mostly near the start, which holds the numbers; sometimes truncate the
 * file. */
static size_t damage(uint8_t *data, size_t size, uint64_t *x)
{
    for (uint64_t n = 1 + next_random(x) % CHANGES; n && size; n--) {
        size_t reach = next_random(x) % 4 && size > 512 ? 512 : size;
        uint8_t *at = data + next_random(x) % reach;
        uint64_t bits = next_random(x) % 2 ? next_random(x) : *at ^ 1u << next_random(x) % 8;
        *at = (uint8_t)bits;
    }
    return next_random(x) % 8 ? size : (size_t)(next_random(x) % (size + 1));
}

/* Copy the data and a random script into a block of exactly this size, so that reads past the end
 * are detected. */
static void try_bytes(const uint8_t *data, size_t size, uint64_t *x)
{
    size_t len = size + fuzz_this.script_bytes;
    uint8_t *copy = malloc(len + !len);
    fuzz_require(copy);
    memcpy(copy, data, size);
    for (size_t i = size; i < len; i++)
        copy[i] = (uint8_t)(next_random(x) >> 32);
    LLVMFuzzerTestOneInput(copy, len);
    free(copy);
}

static bool try_file(const char *path, unsigned long rounds)
{
    static uint8_t original[MAX_FILE], damaged[MAX_FILE];
    uint64_t x = 88172645463325252u;
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    size_t size = fread(original, 1, sizeof original, file);
    fclose(file);
    try_bytes(original, size, &x);
    for (unsigned long i = 0; i < rounds; i++) {
        memcpy(damaged, original, size);
        size_t len = damage(damaged, size, &x);
        if (fuzz_this.takes_models && i % 2)
            fuzz_repair(damaged, len);
        try_bytes(damaged, len, &x);
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
    rounds = getenv("HEFT_TEST_FEWER") ? rounds / 4 : rounds; /* slow builds */
    for (int i = 2; i < argc; i++) {
        printf("%s\n", argv[i]); /* the last file printed is the file that failed */
        fflush(stdout);
        if (!try_file(argv[i], rounds))
            return 1;
    }
    return 0;
}
