/* flax_pieces.c - writes a model as a file of Flax whose arrays are cut into small pieces.
 *
 *   flax-pieces file|stream|arrays IN OUT
 *
 * file: a conversion by all threads; stream: one to a pipe; arrays: the tensors are declared to a
 * writer.  f64 becomes bf16 on the way, unless they are declared. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <heft/write.h>

/* Replaces the library's 1 GiB. */
extern const uint64_t heft_flax_piece_bytes;
const uint64_t heft_flax_piece_bytes = 4096;

static int fail(const heft_error *err)
{
    fprintf(stderr, "%s\n", err->message);
    return 1;
}

static heft_dtype narrower(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return t->dtype == HEFT_F64 ? HEFT_BF16 : HEFT_UNTYPED;
}

/* Return the planned size, or 0 after an error. */
static uint64_t convert(const heft_file *f, heft_sink *sink, heft_error *err)
{
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    uint64_t bytes = 0;
    o.planned_bytes = &bytes;
    o.cast = narrower;
    heft_status st = heft_file_convert(f, heft_format_find(HEFT_STR("flax")), sink, &o, err);
    return st ? 0 : bytes;
}

static int to_stream(const heft_file *f, const char *path, heft_error *err)
{
    heft_sink *sink;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || heft_sink_open_fd(&sink, fd, err))
        return fail(err);
    uint64_t bytes = convert(f, sink, err);
    off_t size = lseek(fd, 0, SEEK_END);
    close(fd);
    if (bytes && (uint64_t)size != bytes)
        fprintf(stderr, "%llu bytes were planned\n", (unsigned long long)bytes);
    return bytes ? (uint64_t)size != bytes : fail(err);
}

static int to_arrays(const heft_file *f, const char *path, heft_error *err)
{
    uint32_t count = heft_tensor_count(f);
    heft_array *arrays = calloc(count, sizeof *arrays);
    heft_status st = arrays ? HEFT_OK : HEFT_E_NOMEM;
    uint32_t n = 0;
    for (; n < count && !st; n++)
        st = heft_array_view(&arrays[n], f, heft_tensor_at(f, n).name, err);
    if (!st)
        st = heft_array_save(path, arrays, count, NULL, err);
    while (n--)
        heft_array_free(&arrays[n]);
    free(arrays);
    return st ? fail(err) : 0;
}

int main(int argc, char **argv)
{
    heft_error err;
    heft_file *f;
    heft_sink *sink;
    if (argc != 4 || heft_file_open(&f, argv[2], NULL, &err))
        return argc == 4 ? fail(&err) : 2;
    int code;
    if (!strcmp(argv[1], "stream"))
        code = to_stream(f, argv[3], &err);
    else if (!strcmp(argv[1], "arrays"))
        code = to_arrays(f, argv[3], &err);
    else
        code = heft_sink_open_file(&sink, argv[3], HEFT_SINK_NO_SYNC, &err) ||
                       !convert(f, sink, &err)
                   ? fail(&err)
                   : 0;
    heft_file_close(f);
    return code;
}
