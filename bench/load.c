/* load HOW FILE TIMES - reads all tensors of FILE into memory; a line of seconds and bytes each time.
 *   heft:touched heft:fresh heft:cold    heft_read_many() into memory that was touched before, or
 *                                        not; cold: touched memory, a file that is not cached
 *   pread:touched pread:fresh            pread on all processors, in pieces
 *   direct:cold                          the same with O_DIRECT */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <heft/heft_ext.h>

#include "measure.h"

enum { PIECE = 4 << 20, BLOCK = 4096 };

typedef struct run {
    const char *path;
    bool fresh, cold;
    uint64_t size;
} run;

static uint8_t *room_for(const run *r)
{
    uint8_t *room = heft_buffer_new((size_t)r->size + PIECE);
    if (!room)
        die(r->path, "no memory");
    if (!r->fresh)
        memset(room, 1, (size_t)r->size + PIECE);
    return room;
}

static void make_cold(const char *path)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
        die(path, "cannot be made cold");
    close(fd);
}

/* ---- heft ---- */

/* Threads that wait for a disk, one of each pair copying meanwhile. */
static const heft_host *waiting_host(void)
{
    static heft_host host;
    static heft_executor threads;
    threads = heft_executor_threads(2 * heft_executor_threads(0).width);
    host = *heft_host_default();
    host.executor = &threads;
    return &host;
}

static heft_file *open_file(const run *r)
{
    heft_source *s;
    heft_error err;
    heft_file *f;
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_access how = r->cold ? HEFT_ACCESS_DIRECT : HEFT_ACCESS_AUTO;
    if (r->cold)
        opt.host = waiting_host();
    if (heft_source_file(&s, r->path, how, &err) || heft_open_source(&f, s, &opt, &err))
        die(r->path, err.message);
    return f;
}

static uint64_t run_heft(const run *r, double *took)
{
    uint8_t *room = room_for(r);
    double begin = now();
    heft_error err;
    heft_file *f = open_file(r);
    uint32_t n = heft_tensor_count(f);
    uint32_t *parts = malloc((n + 1ull) * sizeof *parts);
    void **buffers = malloc((n + 1ull) * sizeof *buffers);
    uint64_t bytes = 0;
    for (uint32_t i = 0; parts && buffers && i < n; i++) {
        parts[i] = heft_tensor_at(f, i).first_part;
        buffers[i] = room + bytes;
        bytes += heft_part_at(f, parts[i]).length;
    }
    if (heft_read_many(buffers, f, parts, n, NULL, NULL, &err))
        die(r->path, err.message);
    *took = now() - begin;
    free(parts);
    free(buffers);
    heft_close(f);
    heft_buffer_free(room, (size_t)r->size + PIECE);
    return bytes;
}

/* ---- the limit ---- */

typedef struct reading {
    int fd;
    uint8_t *room;
    uint64_t size;
    atomic_bool failed;
} reading;

static void read_piece(void *arg, size_t i)
{
    reading *d = arg;
    uint64_t at = (uint64_t)i * PIECE, left = d->size - at;
    size_t want = left < PIECE ? (size_t)left : PIECE;
    if (pread(d->fd, d->room + at, (want + BLOCK - 1) / BLOCK * BLOCK, (off_t)at) < (ssize_t)want)
        atomic_store(&d->failed, true);
}

static uint64_t run_pread(const run *r, double *took)
{
    heft_executor all = heft_executor_threads(0);
    reading d = { .room = room_for(r), .size = r->size };
    double begin = now();
    d.fd = open(r->path, O_RDONLY | (r->cold ? O_DIRECT : 0));
    if (d.fd < 0)
        die(r->path, "cannot be opened");
    all.run(all.ctx, (size_t)((r->size + PIECE - 1) / PIECE), read_piece, &d);
    *took = now() - begin;
    if (atomic_load(&d.failed))
        die(r->path, "cannot be read");
    close(d.fd);
    heft_buffer_free(d.room, (size_t)r->size + PIECE);
    return r->size;
}

static const struct {
    const char *name;
    uint64_t (*go)(const run *r, double *took);
    bool fresh, cold;
} hows[] = {
    { "heft:touched", run_heft, false, false }, { "heft:fresh", run_heft, true, false },
    { "heft:cold", run_heft, false, true },     { "pread:touched", run_pread, false, false },
    { "pread:fresh", run_pread, true, false },  { "direct:cold", run_pread, false, true },
};

int main(int argc, char **argv)
{
    struct stat st;
    for (size_t k = 0; argc == 4 && k < sizeof hows / sizeof *hows; k++) {
        if (strcmp(argv[1], hows[k].name))
            continue;
        if (stat(argv[2], &st))
            die(argv[2], "is not there");
        run r = { argv[2], hows[k].fresh, hows[k].cold, (uint64_t)st.st_size };
        for (unsigned long i = strtoul(argv[3], NULL, 10); i; i--) {
            double took;
            if (r.cold)
                make_cold(r.path);
            uint64_t bytes = hows[k].go(&r, &took);
            printf("%.9f %llu\n", took, (unsigned long long)bytes);
        }
        return 0;
    }
    fputs("usage: load HOW FILE TIMES\n", stderr);
    return 2;
}
