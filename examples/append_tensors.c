/* append_tensors.c - append the tensors of a file to a second file; existing names are skipped.
 *
 *     cc -std=c11 append_tensors.c -o append_tensors $(pkg-config --cflags --libs heft)
 *     ./append_tensors FILE FROM
 *
 * FILE is changed atomically; FROM may have another format. */
#include <stdio.h>

#include <heft/editing.h>
#include <heft/heft.h>
#include <heft/source.h>

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: append_tensors FILE FROM\n", stderr);
        return 2;
    }
    heft_file *from = NULL;
    heft_error err;
    heft_append_result result;
    heft_append_options opt = HEFT_APPEND_OPTIONS_INIT;
    opt.duplicates = HEFT_DUPLICATES_FIRST;
    int failed = heft_file_open(&from, argv[2], NULL, &err) ||
                 heft_file_append(&result, argv[1], from, &opt, &err);
    if (failed)
        fprintf(stderr, "%s: %s\n", argv[!from || err.about == HEFT_ABOUT_SOURCE ? 2 : 1],
                err.message);
    else
        printf("%u tensors appended\n", result.tensors);
    heft_file_close(from);
    return failed;
}
