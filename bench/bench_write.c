/* write HOW OUT MIB TIMES - measures writing MIB MiB to OUT, which is removed afterwards.
 * Prints seconds and bytes, a line per run.
 *   plain    repeated write() of the same buffer
 *   FORMAT   the same buffer for each tensor, with heft_writer_write() */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <heft/heft_ext.h>
#include <heft/write.h>

#include "bench_measure.h"

enum { MIB = 1 << 20, BUFFER = 64 * MIB };

static void write_plain(const char *out, const uint8_t *buffer, uint32_t count)
{
    int fd = open(out, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd < 0)
        die(out, "cannot be created");
    for (uint32_t i = 0; i < count; i++)
        if (write(fd, buffer, BUFFER) != BUFFER)
            die(out, "cannot be written");
    close(fd);
}

static heft_status write_model(heft_writer *w, const uint8_t *buffer, uint32_t count,
                               heft_error *err)
{
    static const uint64_t dims[] = { 4096, 4096 };
    heft_status st = HEFT_OK;
    uint32_t part = 0;
    for (uint32_t i = 0; i < count && !st; i++) {
        char name[32];
        size_t len = (size_t)snprintf(name, sizeof name, "layers.%u.weight", i);
        st = heft_writer_add_dense(&part, w, (heft_str){ name, len }, HEFT_F32, dims, 2, err);
    }
    if (!st)
        st = heft_writer_begin(w, err);
    for (uint32_t i = 0; i < count && !st; i++)
        st = heft_writer_write(w, part - count + 1 + i, buffer, BUFFER, err);
    return st;
}

static void write_heft(const char *format, const char *out, const uint8_t *buffer, uint32_t count)
{
    heft_sink *sink;
    heft_writer *w;
    heft_error err;
    if (heft_sink_open_file(&sink, out, 0, &err) ||
        heft_writer_open(&w, heft_format_find(heft_str_from(format)), sink, NULL, &err))
        die(out, err.message);
    heft_status st = write_model(w, buffer, count, &err);
    if (st)
        heft_writer_discard(w);
    if (st || heft_writer_finish(w, &err))
        die(out, err.message);
}

int main(int argc, char **argv)
{
    if (argc != 5 || (strcmp(argv[1], "plain") && !heft_format_find(heft_str_from(argv[1])))) {
        fputs("usage: write plain|FORMAT OUT MIB TIMES\n", stderr);
        return 2;
    }
    uint32_t count = (uint32_t)(strtoul(argv[3], NULL, 10) * MIB / BUFFER);
    uint8_t *buffer = heft_buffer_new(BUFFER);
    if (!buffer)
        die(argv[2], "no memory");
    for (size_t i = 0; i < BUFFER; i++)
        buffer[i] = (uint8_t)(i * 2654435761u >> 24);
    for (unsigned long i = strtoul(argv[4], NULL, 10); i; i--) {
        double begin = now();
        if (!strcmp(argv[1], "plain"))
            write_plain(argv[2], buffer, count);
        else
            write_heft(argv[1], argv[2], buffer, count);
        printf("%.9f %llu\n", now() - begin, (unsigned long long)count * BUFFER);
        unlink(argv[2]);
    }
    heft_buffer_free(buffer, BUFFER);
    return 0;
}
