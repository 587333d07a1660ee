/* limit WHAT FILE TIMES - measures the upper limit for reading a mapped file.  Prints seconds
 * and bytes, a line per run.
 *   sum      sum every byte, on all processors
 *   sha256   hash with libcrypto, on all processors, one contiguous range each
 *   pages    read a byte of the first page, and one of the page in the middle */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/heft_ext.h>

#include "bench_measure.h"

enum { CHUNK = 4 << 20 };

typedef struct summing {
    mapping m;
    atomic_ullong sum;
} summing;

static void sum_chunk(void *arg, size_t i)
{
    summing *s = arg;
    size_t at = i * CHUNK, end = s->m.len - at < CHUNK ? s->m.len : at + CHUNK;
    uint64_t sum = 0, eight;
    for (; at + sizeof eight <= end; at += sizeof eight) {
        memcpy(&eight, s->m.ptr + at, sizeof eight);
        sum += eight;
    }
    atomic_fetch_add(&s->sum, sum);
}

static void run_sum(mapping m)
{
    heft_executor all = heft_executor_threads(0);
    summing s = { .m = m };
    all.run(all.ctx, (m.len + CHUNK - 1) / CHUNK, sum_chunk, &s);
    keep(&s);
}

typedef struct hashing {
    mapping m;
    const heft_digest *digest;
    uint32_t ranges;
} hashing;

static void hash_range(void *arg, size_t i)
{
    hashing *h = arg;
    size_t at = h->m.len / h->ranges * i, end = at + h->m.len / h->ranges;
    uint8_t out[32];
    void *state = malloc(h->digest->state_bytes);
    if (!state || !h->digest->init(state))
        die("sha256", "no memory");
    for (; at < end; at += CHUNK)
        h->digest->update(state, h->m.ptr + at, end - at < CHUNK ? end - at : CHUNK);
    h->digest->final(out, state);
    keep(out);
    free(state);
}

static void run_sha256(mapping m)
{
    const heft_digest *const *d = heft_host_default()->digests;
    heft_executor all = heft_executor_threads(0);
    while (*d && strcmp((*d)->name, "sha256"))
        d++;
    if (!*d)
        die("sha256", "this build does not have it");
    hashing h = { m, *d, all.width };
    all.run(all.ctx, h.ranges, hash_range, &h);
}

static void run_pages(mapping m)
{
    const volatile uint8_t *p = m.ptr;
    uint8_t both = p[0] ^ p[m.len / 2];
    keep(&both);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(mapping m);
    } limits[] = { { "sum", run_sum }, { "sha256", run_sha256 }, { "pages", run_pages } };
    size_t n = 0, count = sizeof limits / sizeof *limits;
    while (n < count && (argc != 4 || strcmp(argv[1], limits[n].name)))
        n++;
    if (n == count) {
        fputs("usage: limit sum|sha256|pages FILE TIMES\n", stderr);
        return 2;
    }
    for (unsigned long i = strtoul(argv[3], NULL, 10); i; i--) {
        double begin = now();
        mapping m = map_file(argv[2]);
        limits[n].run(m);
        printf("%.9f %llu\n", now() - begin, (unsigned long long)m.len);
        unmap_file(m);
    }
    return 0;
}
