/* fingerprint.h - whether a name in a folder is taken, and by which file. */
#ifndef HEFT_FINGERPRINT_H
#define HEFT_FINGERPRINT_H
#include "port/port.h"

/* Of a file's bytes: size and BLAKE3 of 64 blocks of 4096 bytes spread over the file, which are all bytes of a file
 * up to 256 KiB.  A copy of the file has the same fingerprint. */
typedef struct heft_fingerprint {
    uint64_t size; /* HEFT_NOWHERE: not a regular file */
    uint8_t hash[32];
} heft_fingerprint;

heft_status heft_fingerprint_of(heft_fingerprint *out, int fd, heft_error *err);
/* *exists false: no file has that name.  Symbolic links are not followed. */
heft_status heft_fingerprint_at(bool *exists, heft_fingerprint *out, int dir, const char *name,
                                heft_error *err);
bool heft_fingerprint_equal(const heft_fingerprint *a, const heft_fingerprint *b);

/* Whether anything has that name.  A question that the system does not answer is an error, never a no. */
heft_status heft_name_exists(bool *exists, int dir, const char *name, heft_error *err);

#endif
