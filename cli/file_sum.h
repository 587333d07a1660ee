/* file_sum.h - SHA-256 of whole files. */
#ifndef HEFT_CLI_FILE_SUM_H
#define HEFT_CLI_FILE_SUM_H
#include "cmd.h"

enum { FILE_SUM_BYTES = 32 };
typedef struct file_sum {
    uint8_t bytes[FILE_SUM_BYTES];
    uint64_t size; /* bytes of the file */
} file_sum;

/* Compute the sum of the file `name` in the folder `dir`, or of the path `name` if dir is NULL.
 * Return an exit code: CODE_CANNOT if the build has no SHA-256. */
int file_sum_compute(file_sum *out, const char *dir, const char *name);

#endif
