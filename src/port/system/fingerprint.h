/* fingerprint.h - recognise a file by a sample of its bytes, and test whether a name exists. */
#ifndef HEFT_FINGERPRINT_H
#define HEFT_FINGERPRINT_H
#include "port/port.h"

/* Size of the file, and BLAKE3 of 64 blocks of 4096 bytes spread over the file; of all bytes if the
 * file has at most 256 KiB.  A copy of a file has the same fingerprint. */
typedef struct heft_fingerprint {
    uint64_t size; /* HEFT_NOWHERE: not a regular file */
    uint8_t hash[32];
} heft_fingerprint;

heft_status heft_fingerprint_of(heft_fingerprint *out, int fd, heft_error *err);
/* Fingerprint the file `name` in the directory; *exists false: there is no such name.  Does not
 * follow symbolic links. */
heft_status heft_fingerprint_at(bool *exists, heft_fingerprint *out, int dir, const char *name,
                                heft_error *err);
bool heft_fingerprint_equal(const heft_fingerprint *a, const heft_fingerprint *b);

/* Set *exists if the directory has that name.  If the system cannot tell, this is an error, never
 * "no". */
heft_status heft_name_exists(bool *exists, int dir, const char *name, heft_error *err);

#endif
