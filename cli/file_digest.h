/* file_digest.h - the digest of all bytes of a file. */
#ifndef HEFT_CLI_FILE_DIGEST_H
#define HEFT_CLI_FILE_DIGEST_H
#include <heft/heft_ext.h>

typedef struct file_digest {
    const char *path, *algorithm;      /* algorithm: "sha256", or "sha1" of a git blob */
    char hex[2 * HEFT_HASH_BYTES + 1]; /* result */
    uint64_t bytes;                    /* size of the file */
    heft_status status;                /* result */
    heft_error err;
} file_digest;

/* Compute the digests of several files, on all processors. Errors are in the results.
 *   HEFT_E_UNSUPPORTED  this build lacks the algorithm
 *   HEFT_E_IO           the file cannot be read, or was changed meanwhile
 * progress may be NULL; false stops the work, and the remaining files get HEFT_E_CANCELLED. */
void file_digests_compute(file_digest *files, size_t count, heft_progress_fn progress, void *ctx);

#endif
