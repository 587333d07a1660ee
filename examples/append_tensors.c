/* append FILE FROM - adds those tensors of FROM to FILE whose names it does not have. */
#include <stdio.h>

#include <heft/heft.h>

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: append FILE FROM\n", stderr);
        return 2;
    }
    heft_file *from = NULL;
    heft_error err;
    heft_append_result result = { .tensors = 0 };
    heft_append_options opt = HEFT_APPEND_OPTIONS_INIT;
    opt.duplicates = HEFT_DUPLICATES_FIRST;
    int failed = heft_file_open(&from, argv[2], NULL, &err) ||
                 heft_file_append(&result, argv[1], from, &opt, &err);
    if (failed)
        fprintf(stderr, "%s: %s\n", argv[!from || result.source_failed ? 2 : 1], err.message);
    else
        printf("%u tensors appended\n", result.tensors);
    heft_file_close(from);
    return failed;
}
