/* kernels SET KERNEL MIB TIMES - measures a kernel of an instruction set against a copy of the
 * larger side, MIB MiB, on a single thread.  KERNEL is blake3, a cast (f16:bf16) or a block type
 * that is decoded to f32 (q4_k).  Prints a line per run: the seconds of processor time of the
 * kernel and of the copy.  `kernels` alone prints the numbers of the sets that this processor has,
 * and `kernels SET` the name of a set. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/heft.h>

#include "base/blake3.h"
#include "bench_measure.h"
#include "bench_values.h"
#include "model/blocks.h"
#include "simd/simd.h"

enum { WEIGHTS = 1 << 12 }; /* written at once */

typedef struct work {
    const heft_kernels *kernels;
    heft_dtype from, to; /* HEFT_DTYPE_NONE: chunks are hashed */
    size_t count;        /* elements, blocks or chunks */
    uint8_t *src, *dst;
    size_t bytes;
} work;

static uint32_t sets(void)
{
    uint32_t n = 0;
    while (heft_simd_sets[n].kernels != &heft_portable_kernels)
        n++;
    return n + 1;
}

static void print_sets(void)
{
    for (uint32_t i = 0; i < sets(); i++)
        if (heft_simd_sets[i].is_supported())
            printf("%u\n", (unsigned)i);
}

static const heft_kernels *set_at(const char *number)
{
    unsigned long i = strtoul(number, NULL, 10);
    if (i >= sets() || !heft_simd_sets[i].is_supported())
        die(number, "is no instruction set of this processor");
    return heft_simd_sets[i].kernels;
}

/* ---- a kernel ---- */

static heft_dtype type_of(const char *name, size_t len)
{
    heft_dtype t = heft_dtype_find((heft_str){ name, len });
    if (!t)
        die(name, "is no element type");
    return t;
}

static work parse(const heft_kernels *kernels, const char *name, size_t bytes)
{
    const char *colon = strchr(name, ':');
    work w = { .kernels = kernels, .bytes = bytes, .count = bytes / HEFT_BLAKE3_CHUNK };
    if (!strcmp(name, "blake3"))
        return w;
    w.from = type_of(name, colon ? (size_t)(colon - name) : strlen(name));
    w.to = colon ? type_of(colon + 1, strlen(colon + 1)) : HEFT_F32;
    uint32_t a = heft_dtype_get(w.from)->block_bytes, b = heft_dtype_get(w.to)->block_bytes;
    if (colon)
        w.count = bytes / (a > b ? a : b) / HEFT_KERNEL_BLOCK * HEFT_KERNEL_BLOCK;
    else
        w.count = bytes / sizeof(float) / heft_dtype_get(w.from)->block_elems;
    if (!colon && !heft_block_is_known(w.from))
        die(name, "is no block type that can be decoded");
    return w;
}

/* The bytes of blocks are arbitrary, but their scales are finite. */
static void fill(const work *w)
{
    for (size_t i = 0; i < w->bytes; i++)
        w->src[i] = (uint8_t)(i * 2654435761U >> 13 & 0x3F);
    if (w->from && !heft_block_is_known(w->from))
        fill_weights(w->src, w->from, w->count / WEIGHTS * WEIGHTS);
    memset(w->dst, 0, w->bytes);
}

/* false: the set has no such kernel, the portable form is used. */
static bool run(const work *w)
{
    const heft_kernels *k = w->kernels;
    if (!w->from && !k->blake3_chunks)
        return false;
    if (!w->from)
        k->blake3_chunks((uint32_t(*)[8])(void *)w->dst, w->src, w->count, 0);
    else if (heft_block_is_known(w->from) && !k->decode_blocks)
        return false;
    else if (heft_block_is_known(w->from))
        k->decode_blocks((float *)(void *)w->dst, w->from, w->src, w->count);
    else
        return k->cast && k->cast(w->dst, w->to, w->src, w->from, w->count, false);
    keep(w->dst);
    return true;
}

static void measure_kernel(const work *w, long times)
{
    for (long i = 0; i < times; i++) {
        double start = processor_time();
        if (!run(w))
            return;
        double took = processor_time() - start;
        start = processor_time();
        memcpy(w->dst, w->src, w->bytes);
        keep(w->dst);
        printf("%.9f %.9f\n", took, processor_time() - start);
    }
}

int main(int argc, char **argv)
{
    if (argc == 1)
        print_sets();
    else if (argc == 2)
        puts(set_at(argv[1])->name);
    else if (argc != 5)
        die("kernels", "[SET [KERNEL MIB TIMES]]");
    if (argc != 5)
        return 0;
    work w = parse(set_at(argv[1]), argv[2], (size_t)strtoul(argv[3], NULL, 10) << 20);
    w.src = malloc(w.bytes);
    w.dst = malloc(w.bytes);
    if (!w.src || !w.dst)
        die("kernels", "no memory");
    fill(&w);
    measure_kernel(&w, strtol(argv[4], NULL, 10));
    free(w.src);
    free(w.dst);
    return 0;
}
