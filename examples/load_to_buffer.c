/* load_to_buffer FILE TENSOR - reads one tensor into memory of one's own, as f32, and sums it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/heft.h>

/* The tensor's elements as f32, to be freed, and how many in *count; NULL with err set. */
static float *load_f32(size_t *count, const heft_file *file, uint32_t id, heft_error *err)
{
    heft_tensor t = heft_tensor_at(file, id);
    uint32_t part = heft_part_find(file, id, HEFT_STR("data"));
    if (part == HEFT_NONE || t.layout != HEFT_DENSE || !heft_dtype_can_cast(HEFT_F32, t.dtype)) {
        snprintf(err->message, sizeof err->message, "it has no numbers that f32 could hold");
        return NULL;
    }
    size_t bytes = (size_t)heft_part_at(file, part).length;
    void *stored = malloc(bytes + 1);
    *count = 1; /* the last block of a packed type may hold fewer elements than the others */
    for (uint32_t i = 0; i < t.rank; i++)
        *count *= (size_t)t.dims[i];
    float *values = malloc(*count * sizeof *values + 1);
    if (!stored || !values)
        snprintf(err->message, sizeof err->message, "no memory for %zu elements", *count);
    else if (!heft_part_read(stored, file, part, 0, bytes, err) &&
             heft_dtype_cast(values, HEFT_F32, stored, t.dtype, *count)) {
        free(stored);
        return values;
    }
    free(stored);
    free(values);
    return NULL;
}

static int sum_tensor(const heft_file *file, const char *name, heft_error *err)
{
    uint32_t id = heft_tensor_find(file, heft_str_from(name));
    if (id == HEFT_NONE) {
        snprintf(err->message, sizeof err->message, "there is no tensor '%s'", name);
        return 1;
    }
    size_t count = 0;
    float *values = load_f32(&count, file, id, err);
    if (!values)
        return 1;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)values[i];
    printf("%s: %zu elements, sum %g\n", name, count, sum);
    free(values);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: load_to_buffer FILE TENSOR\n", stderr);
        return 2;
    }
    heft_file *file = NULL;
    heft_error err;
    int failed = heft_file_open(&file, argv[1], NULL, &err) || sum_tensor(file, argv[2], &err);
    if (failed)
        fprintf(stderr, "%s: %s\n", argv[1], err.message);
    heft_file_close(file);
    return failed;
}
