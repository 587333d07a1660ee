/* write_stream.c - write two tensors to a file, part by part.
 *
 *     cc -std=c11 write_stream.c -o write_stream $(pkg-config --cflags --libs heft)
 *     ./write_stream OUT.safetensors
 *
 * The suffix of OUT selects the format.  For a list of arrays heft_array_save() is shorter; a
 * writer also takes sparse tensors, attributes, and data that do not fit into memory. */
#include <stdio.h>

#include <heft/heft.h>
#include <heft/write.h>

static const float weight[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
static const float bias[2] = { 0.5f, -0.5f };

/* Declare both tensors, then write their bytes in the same order. */
static heft_status write_tensors(heft_writer *w, heft_error *err)
{
    uint32_t weight_part, bias_part;
    heft_status st = heft_writer_add_dense(&weight_part, w, HEFT_STR("fc.weight"), HEFT_F32,
                                           (uint64_t[]){ 2, 3 }, 2, err);
    if (!st)
        st = heft_writer_add_dense(&bias_part, w, HEFT_STR("fc.bias"), HEFT_F32, (uint64_t[]){ 2 },
                                   1, err);
    if (!st)
        st = heft_writer_begin(w, err);
    if (!st)
        st = heft_writer_write(w, weight_part, weight, sizeof weight, err);
    return st ? st : heft_writer_write(w, bias_part, bias, sizeof bias, err);
}

static heft_status write_model(const char *path, heft_error *err)
{
    heft_sink *sink = NULL;
    heft_status st = heft_sink_open_file(&sink, path, HEFT_SINK_REPLACE, err);
    if (st)
        return st;
    heft_writer *w = NULL;
    st = heft_writer_open(&w, heft_format_for_path(path), sink, NULL, err); /* takes the sink */
    if (st)
        return st;
    st = write_tensors(w, err);
    if (!st)
        return heft_writer_finish(w, err);
    heft_writer_discard(w);
    return st;
}

int main(int argc, char **argv)
{
    if (argc != 2 || !heft_format_for_path(argv[1])) {
        fputs("usage: write_stream OUT.safetensors (or another suffix that heft writes)\n", stderr);
        return 2;
    }
    heft_error err;
    if (write_model(argv[1], &err)) {
        fprintf(stderr, "%s: %s\n", argv[1], err.message);
        return 1;
    }
    return 0;
}
