/* ls.c - list the tensors of a file of any format: name, element type, shape and bytes.
 *
 *     cc -std=c11 ls.c -o ls $(pkg-config --cflags --libs heft)
 *     ./ls FILE */
#include <inttypes.h>
#include <stdio.h>

#include <heft/check.h>
#include <heft/heft.h>

static void print_tensor(const heft_file *file, uint32_t id)
{
    heft_tensor t = heft_tensor_at(file, id);
    const heft_dtype_info *type = heft_dtype_get(t.dtype);
    printf("%.*s\t%s\t[", (int)t.name.len, t.name.ptr, type ? type->name : "untyped");
    for (uint32_t i = 0; i < t.rank; i++)
        printf("%s%" PRIu64, i ? ", " : "", t.dims[i]);
    printf("]\t%" PRIu64 "\n", heft_tensor_bytes(file, id));
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: ls FILE\n", stderr);
        return 2;
    }
    heft_file *file = NULL;
    heft_error err;
    if (heft_file_open(&file, argv[1], NULL, &err)) {
        fprintf(stderr, "%s: %s\n", argv[1], err.message);
        return 1;
    }
    heft_finding notice; /* something unusual, such as a name that looks like a path */
    for (uint32_t i = 0, n = heft_notice_count(file); i < n; i++) {
        notice = heft_notice_at(file, i);
        if (notice.severity == HEFT_WARNING)
            fprintf(stderr, "warning: %s: %s\n", notice.rule, notice.text);
    }
    for (uint32_t id = 0; id < heft_tensor_count(file); id++)
        print_tensor(file, id);
    heft_file_close(file);
    return fflush(stdout) ? 1 : 0;
}
