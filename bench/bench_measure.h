/* bench_measure.h - what the programs of this folder share: time, memory, one line per run. */
#ifndef HEFT_BENCH_MEASURE_H
#define HEFT_BENCH_MEASURE_H
#include <stddef.h>
#include <stdint.h>

typedef struct result {
    double seconds;
    uint32_t tensors;
    uint64_t index;        /* bytes that the index says it takes */
    uint64_t own, highest; /* RssAnon and VmHWM, while it is there */
} result;

double now(void);
void note_memory(result *r);
/* Keeps the compiler from leaving out work whose result nobody looks at. */
void keep(const void *made);
_Noreturn void die(const char *path, const char *why);

typedef struct mapping {
    const uint8_t *ptr;
    size_t len;
} mapping;
mapping map_file(const char *path);
void unmap_file(mapping m);

/* Runs as often as argv[2] says on the file argv[1] and prints a line each: seconds, tensors, bytes of the
 * index, and by how much RssAnon and VmHWM grew. */
void measure(void (*run)(result *r, const char *path), const char *path, const char *times);

#endif
