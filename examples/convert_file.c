/* convert_file.c - convert a model to a different format and store f32 matrices as f16.
 *
 *     cc -std=c11 convert_file.c -o convert_file $(pkg-config --cflags --libs heft)
 *     ./convert_file IN OUT.safetensors
 *
 * The suffix of OUT selects the format.  OUT must not exist. */
#include <stdio.h>

#include <heft/heft.h>
#include <heft/write.h>

static heft_dtype halve_matrices(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return t->dtype == HEFT_F32 && t->rank == 2 ? HEFT_F16 : HEFT_UNTYPED;
}

static void print_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                       const char *text)
{
    (void)ctx, (void)severity;
    fprintf(stderr, "%.*s: %s (%s)\n", (int)tensor.len, tensor.ptr, text, rule);
}

static heft_status convert(const heft_file *in, const char *path, heft_error *err)
{
    heft_sink *sink = NULL;
    heft_status st = heft_sink_open_file(&sink, path, 0, err);
    if (st)
        return st;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    opt.cast = halve_matrices;
    opt.write = &write;
    write.on_loss = print_loss;
    return heft_file_convert(in, heft_format_for_path(path), sink, &opt, err);
}

int main(int argc, char **argv)
{
    if (argc != 3 || !heft_format_for_path(argv[2])) {
        fputs("usage: convert_file IN OUT.safetensors (or another suffix that heft writes)\n",
              stderr);
        return 2;
    }
    heft_file *in = NULL;
    heft_error err;
    int failed = heft_file_open(&in, argv[1], NULL, &err) || convert(in, argv[2], &err);
    if (failed)
        fprintf(stderr, "%s: %s\n", argv[1], err.message);
    heft_file_close(in);
    return failed;
}
