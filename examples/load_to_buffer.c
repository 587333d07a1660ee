/* load_to_buffer.c - read one tensor, of any element type, as f32 and sum its elements.
 *
 *     cc -std=c11 load_to_buffer.c -o load_to_buffer $(pkg-config --cflags --libs heft)
 *     ./load_to_buffer FILE TENSOR */
#include <stdio.h>

#include <heft/heft.h>

int main(int argc, char **argv)
{
    heft_file *file = NULL;
    heft_array array;
    heft_error err;
    if (argc != 3)
        return fputs("usage: load_to_buffer FILE TENSOR\n", stderr), 2;
    heft_str name = heft_str_from(argv[2]);
    if (heft_file_open(&file, argv[1], NULL, &err) ||
        heft_array_read(&array, file, name, HEFT_F32, NULL, 0, &err)) {
        fprintf(stderr, "%s: %s\n", argv[1], err.message);
        heft_file_close(file);
        return 1;
    }
    double sum = 0;
    const float *values = array.data;
    size_t count = (size_t)array.bytes / sizeof *values;
    for (size_t i = 0; i < count; i++)
        sum += (double)values[i];
    printf("%s: %zu elements, sum %g\n", argv[2], count, sum);
    heft_array_free(&array);
    heft_file_close(file);
}
