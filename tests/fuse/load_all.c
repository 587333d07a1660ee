/* load_all FILE - read all tensors by one heft_part_read_many() and write them to stdout. */
#include <stdio.h>
#include <stdlib.h>

#include <heft/heft.h>

int main(int argc, char **argv)
{
    heft_file *f = NULL;
    heft_error err;
    if (argc != 2 || heft_file_open(&f, argv[1], NULL, &err)) {
        fprintf(stderr, "%s\n", argc == 2 ? err.message : "usage: load_all FILE");
        return 2;
    }
    uint32_t count = heft_tensor_count(f);
    uint32_t *parts = calloc(count + 1, sizeof *parts);
    void **buffers = calloc(count + 1, sizeof *buffers);
    bool is_read = parts && buffers;
    for (uint32_t i = 0; is_read && i < count; i++) {
        parts[i] = heft_tensor_at(f, i).first_part;
        buffers[i] = heft_buffer_new((size_t)heft_part_at(f, parts[i]).length);
        is_read = buffers[i];
    }
    if (is_read && heft_part_read_many(buffers, f, parts, count, NULL, NULL, &err)) {
        fprintf(stderr, "%s\n", err.message);
        is_read = false;
    }
    for (uint32_t i = 0; buffers && i < count; i++) {
        size_t length = (size_t)heft_part_at(f, heft_tensor_at(f, i).first_part).length;
        is_read = is_read && fwrite(buffers[i], 1, length, stdout) == length;
        heft_buffer_free(buffers[i], length);
    }
    free(parts);
    free(buffers);
    heft_file_close(f);
    return is_read ? 0 : 1;
}
