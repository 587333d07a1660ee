/* digest_files.h - digests of many files, or ranges of files, on all processors. */
#ifndef HEFT_CLI_DIGEST_FILES_H
#define HEFT_CLI_DIGEST_FILES_H
#include <heft/sign.h>

#include "process/command_session.h"

typedef struct digest_request {
    const char *path;      /* borrowed */
    const char *algorithm; /* "sha256", "git-sha1", "blake2b" */
    uint64_t from, to;     /* range; to is HEFT_UNKNOWN_LENGTH for the rest of the file */
    /* results */
    uint64_t size; /* file size */
    bool is_short; /* the file ends before `to`: there is no digest */
    heft_file_digest digest;
} digest_request;

/* Compute all digests, each file from its first to its last byte. label is the name at the progress
 * bar. Return an exit code; a file that cannot be read, or changes meanwhile, is an error. */
int digest_files(const session *s, digest_request *requests, size_t count, const char *label);

#endif
