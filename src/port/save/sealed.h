/* sealed.h - small files that end with the BLAKE3 of all preceding bytes, so that a torn or damaged
 * file is recognised. */
#ifndef HEFT_SEALED_H
#define HEFT_SEALED_H
#include "port/system/disk.h"

enum { HEFT_SEAL = 32 }; /* bytes of the digest */

/* Write and read little-endian numbers.  heft_put() and heft_put_bytes() return the address after
 * the written bytes. */
uint8_t *heft_put(uint8_t *to, uint64_t v, unsigned bytes);
uint64_t heft_get(const uint8_t *from, unsigned bytes);
uint8_t *heft_put_bytes(uint8_t *to, const void *from, uint64_t len);

/* Write the digest into the last HEFT_SEAL of len bytes. */
void heft_seal(uint8_t *bytes, size_t len);
/* Return true if the bytes begin with the magic number and end with the digest of the preceding
 * bytes. */
bool heft_is_sealed(const uint8_t *bytes, size_t len, const char magic[8]);

/* Write a file under the name `partial`, sync the file, rename it to `name` and sync the folder.  A
 * failure leaves neither name behind, unless the file cannot be removed. */
heft_status heft_sealed_store(const heft_target *t, const char *name, const char *part,
                              const void *bytes, size_t len, heft_error *err);
/* Read a whole file.  The caller frees *out, which is NULL if there is no such file.
 * HEFT_E_FORMAT: the file is not regular, or larger than max_size bytes. */
heft_status heft_sealed_load(uint8_t **out, size_t *len, int dir, const char *name,
                             uint64_t max_size, heft_error *err);

#endif
