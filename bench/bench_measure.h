/* bench_measure.h - shared by the benchmarks: time, memory, one line of output per run. */
#ifndef HEFT_BENCH_MEASURE_H
#define HEFT_BENCH_MEASURE_H
#include <stddef.h>
#include <stdint.h>

typedef struct result {
    double seconds;
    uint32_t tensors;
    uint64_t index;        /* bytes, as reported by heft_file_memory() */
    uint64_t own, highest; /* RssAnon and VmHWM in bytes, while the index is in memory */
} result;

double now(void);
double processor_time(void); /* of this process, in seconds */
void note_memory(result *r);
/* Prevent the compiler from removing work with an unused result. */
void keep(const void *made);
_Noreturn void die(const char *path, const char *why);

typedef struct mapping {
    const uint8_t *ptr;
    size_t len;
} mapping;
mapping map_file(const char *path);
void unmap_file(mapping m);

/* Call run() on the file `times` times (decimal) and print a line for each: seconds, tensors,
 * bytes of the index, growth of RssAnon and of VmHWM in bytes. */
void measure(void (*run)(result *r, const char *path), const char *path, const char *times);

#endif
