/* load HOW FILE TIMES [one] - measures reading all tensors of FILE into memory ("one": on one
 * thread). Prints seconds and bytes, a line per run.
 *   heft:touched   heft_part_read_many() into memory that was touched before
 *   heft:fresh     heft_part_read_many() into memory that was not touched before
 *   heft:cold      like heft:touched, with a file that is not in the page cache
 *   heft:window    like heft:touched, reusing 1 GiB of memory
 *   pread:touched  pread() in chunks on all processors, into touched memory
 *   pread:fresh    pread() in chunks on all processors, into fresh memory
 *   direct:cold    like pread:touched, with O_DIRECT and a file that is not in the page cache
 *   heft:map       like heft:touched, from a mapping
 *   pread:many     like pread:touched, with 16 threads and chunks of 8 MiB
 *   direct:many    like pread:many, with O_DIRECT
 * Cold files are read by two threads per processor. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <heft/heft_ext.h>

#include "bench_measure.h"

enum { CHUNK = 4 << 20, BLOCK = 4096, WINDOW = 1 << 30, MANY = 16, MANY_CHUNK = 8 << 20 };

typedef struct run {
    const char *path;
    bool fresh, cold, one, mapped, many, direct;
    uint64_t size, capacity; /* bytes of the file, and of the memory for its tensors */
} run;

static uint8_t *new_buffer(const run *r)
{
    uint8_t *buffer = heft_buffer_new((size_t)r->capacity);
    if (!buffer)
        die(r->path, "no memory");
    if (!r->fresh)
        memset(buffer, 1, (size_t)r->capacity);
    return buffer;
}

static void make_cold(const char *path)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
        die(path, "cannot be made cold");
    close(fd);
}

/* One thread per processor; two for cold files, so that one copies while the other waits for the
 * disk. */
static heft_executor threads_for(const run *r)
{
    uint32_t all = heft_executor_threads(0).width;
    return heft_executor_threads(r->one ? 1 : r->many ? MANY : r->cold ? 2 * all : all);
}

/* ---- Heft ---- */

static const heft_host *host_for(const run *r)
{
    static heft_host host;
    static heft_executor threads;
    threads = threads_for(r);
    heft_host_copy(&host, NULL, sizeof host);
    host.executor = &threads;
    return &host;
}

static heft_file *open_file(const run *r)
{
    heft_source *s;
    heft_error err;
    heft_file *f;
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_access how = r->mapped ? HEFT_ACCESS_MAP : r->cold ? HEFT_ACCESS_DIRECT : HEFT_ACCESS_AUTO;
    opt.host = host_for(r);
    if (heft_source_open_file(&s, r->path, how, &err) || heft_file_open_source(&f, s, &opt, &err))
        die(r->path, err.message);
    return f;
}

/* Read as many tensors from `first` on as fit into the buffer, laid out as in the file; return
 * their number. */
static uint32_t read_some(const run *r, const heft_file *f, uint32_t first, uint8_t *buffer,
                          uint64_t *bytes)
{
    uint32_t left = heft_tensor_count(f) - first, n = 0;
    uint32_t *parts = malloc(left * sizeof *parts);
    void **buffers = malloc(left * sizeof *buffers);
    uint64_t begin = heft_part_at(f, heft_tensor_at(f, first).first_part).offset / BLOCK * BLOCK,
             end = 0, used = 0;
    heft_error err;
    for (; parts && buffers && n < left; n++) {
        parts[n] = heft_tensor_at(f, first + n).first_part;
        heft_part p = heft_part_at(f, parts[n]);
        if (p.offset < end || p.length > r->capacity || p.offset - begin > r->capacity - p.length)
            break;
        buffers[n] = buffer + (p.offset - begin);
        end = p.offset + p.length;
        used += p.length;
    }
    if (!n)
        die(r->path, "a tensor does not fit into the buffer");
    if (heft_part_read_many(buffers, f, parts, n, NULL, NULL, &err))
        die(r->path, err.message);
    free(parts);
    free(buffers);
    *bytes += used;
    return n;
}

static uint64_t run_heft(const run *r, double *took)
{
    uint8_t *buffer = new_buffer(r);
    double begin = now();
    heft_file *f = open_file(r);
    uint64_t bytes = 0;
    for (uint32_t i = 0, n = heft_tensor_count(f); i < n;)
        i += read_some(r, f, i, buffer, &bytes);
    *took = now() - begin;
    heft_file_close(f);
    heft_buffer_free(buffer, (size_t)r->capacity);
    return bytes;
}

/* ---- upper limit: pread() ---- */

typedef struct reading {
    int fd;
    uint8_t *buffer;
    uint64_t size, chunk;
    atomic_bool failed;
} reading;

static void read_chunk(void *arg, size_t i)
{
    reading *d = arg;
    uint64_t at = (uint64_t)i * d->chunk, left = d->size - at;
    size_t want = (size_t)(left < d->chunk ? left : d->chunk);
    if (pread(d->fd, d->buffer + at, (want + BLOCK - 1) / BLOCK * BLOCK, (off_t)at) < (ssize_t)want)
        atomic_store(&d->failed, true);
}

static uint64_t run_pread(const run *r, double *took)
{
    heft_executor all = threads_for(r);
    reading d = { .buffer = new_buffer(r), .size = r->size, .chunk = r->many ? MANY_CHUNK : CHUNK };
    double begin = now();
    d.fd = open(r->path, O_RDONLY | (r->cold || r->direct ? O_DIRECT : 0));
    if (d.fd < 0)
        die(r->path, "cannot be opened");
    all.run(all.ctx, (size_t)((r->size + d.chunk - 1) / d.chunk), read_chunk, &d);
    *took = now() - begin;
    if (atomic_load(&d.failed))
        die(r->path, "cannot be read");
    close(d.fd);
    heft_buffer_free(d.buffer, (size_t)r->capacity);
    return r->size;
}

static const struct {
    const char *name;
    uint64_t (*go)(const run *r, double *took);
    bool fresh, cold, window, mapped, many, direct;
} methods[] = {
    { "heft:touched", run_heft, .fresh = false },
    { "heft:fresh", run_heft, .fresh = true },
    { "heft:cold", run_heft, .cold = true },
    { "heft:window", run_heft, .window = true },
    { "pread:touched", run_pread, .fresh = false },
    { "pread:fresh", run_pread, .fresh = true },
    { "direct:cold", run_pread, .cold = true },
    { "heft:map", run_heft, .mapped = true },
    { "pread:many", run_pread, .many = true },
    { "direct:many", run_pread, .many = true, .direct = true },
};

int main(int argc, char **argv)
{
    struct stat st;
    bool one = argc == 5 && !strcmp(argv[4], "one");
    for (size_t k = 0; (argc == 4 || one) && k < sizeof methods / sizeof *methods; k++) {
        if (strcmp(argv[1], methods[k].name))
            continue;
        if (stat(argv[2], &st))
            die(argv[2], "does not exist");
        uint64_t size = (uint64_t)st.st_size, capacity = size + CHUNK;
        if (methods[k].window && capacity > WINDOW)
            capacity = WINDOW;
        run r = { .path = argv[2],
                  .fresh = methods[k].fresh,
                  .cold = methods[k].cold,
                  .one = one,
                  .mapped = methods[k].mapped,
                  .many = methods[k].many,
                  .direct = methods[k].direct,
                  .size = size,
                  .capacity = capacity };
        for (unsigned long i = strtoul(argv[3], NULL, 10); i; i--) {
            double took;
            if (r.cold)
                make_cold(r.path);
            uint64_t bytes = methods[k].go(&r, &took);
            printf("%.9f %llu\n", took, (unsigned long long)bytes);
        }
        return 0;
    }
    fputs("usage: load HOW FILE TIMES [one]\n", stderr);
    return 2;
}
