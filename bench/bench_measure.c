/* bench_measure.c - time and memory of this process, as reported by the operating system. */
#include "bench_measure.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double processor_time(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Return the value of a line of /proc/self/status in bytes, 0 if missing. */
static uint64_t status_bytes(const char *key)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key)) && sscanf(line + strlen(key), ": %llu", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib << 10;
}

void note_memory(result *r)
{
    r->own = status_bytes("RssAnon");
    r->highest = status_bytes("VmHWM");
}

void keep(const void *made)
{
    (void)made;
}

void die(const char *path, const char *why)
{
    fprintf(stderr, "%s: %s\n", path, why);
    exit(1);
}

mapping map_file(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st))
        die(path, "cannot be opened");
    size_t len = (size_t)st.st_size;
    mapping m = { mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0), len };
    if (m.ptr == MAP_FAILED)
        die(path, "cannot be mapped");
    close(fd);
    return m;
}

void unmap_file(mapping m)
{
    munmap((void *)(uintptr_t)m.ptr, m.len);
}

void measure(void (*run)(result *r, const char *path), const char *path, const char *times)
{
    for (unsigned long i = strtoul(times, NULL, 10); i; i--) {
        result before = { .seconds = 0 }, r = before;
        note_memory(&before);
        run(&r, path);
        printf("%.9f %u %llu %llu %llu\n", r.seconds, (unsigned)r.tensors,
               (unsigned long long)r.index, (unsigned long long)(r.own - before.own),
               (unsigned long long)(r.highest - before.highest));
    }
}
