/* port.h - what the files of this folder share. */
#ifndef HEFT_PORT_H
#define HEFT_PORT_H
#include <heft/heft_ext.h>

#include "base/error.h"

/* HEFT_E_IO with errno's own words behind the message. */
heft_status heft_os_error(heft_error *err, int os, const char *what);

/* A regular file by a path seen from the directory dir, opened with these flags on top. */
heft_status heft_source_at(heft_source **out, int dir, const char *path, int flags, heft_access how,
                           heft_error *err);

extern const heft_allocator heft_libc_allocator;
extern const heft_executor heft_all_threads;
void heft_os_entropy(void *buf, size_t len);
extern const heft_digest heft_isal_crc32, heft_isal_crc32c; /* crc_isal.c */
extern const heft_digest heft_openssl_sha256;               /* digest_openssl.c */
extern const heft_digest heft_xxhash_xxh3;                  /* digest_xxhash.c */
extern const heft_codec heft_zstd_codec;                    /* zstd.c */
extern const heft_codec heft_inflate_codec;                 /* inflate.c */

/* ---- mappings that may lose their file, fault.c ---- */

typedef struct heft_guard heft_guard;
/* NULL: no memory. */
heft_guard *heft_guard_new(void *base, size_t len);
void heft_guard_free(heft_guard *g);
/* Between the two, a fault in the mapping is remembered instead of ending the program. */
void heft_guard_arm(heft_guard *g);
void heft_guard_disarm(heft_guard *g);
bool heft_guard_tripped(const heft_guard *g);

#endif
