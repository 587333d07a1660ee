/* port.h - what the files of this folder share. */
#ifndef HEFT_PORT_H
#define HEFT_PORT_H
#include <heft/heft_ext.h>

#include "base/error.h"
#include "base/sized.h"

/* HEFT_E_IO with errno's own words behind the message. */
heft_status heft_os_error(heft_error *err, int os, const char *what);

/* openat(), repeated for as long as signals interrupt it. */
int heft_open_at(int dir, const char *path, int flags);
/* The folder that a path lies in. */
int heft_open_folder_of(const char *path, int flags);

/* A regular file by a path seen from the directory dir, opened with these flags on top. */
heft_status heft_source_at(heft_source **out, int dir, const char *path, int flags, heft_access how,
                           heft_error *err);

/* A file that is open already; the descriptor stays the caller's. */
heft_status heft_source_of(heft_source **out, int fd, heft_error *err);

/* The path of the file that stands for the model in a folder; to be freed.  *passed: the name of PyTorch's weights that
 * lie there, too, or NULL. */
heft_status heft_folder_main_file(char **out, const char **passed, const char *path,
                                  heft_error *err);
/* Whether a file called `index` can be the index of a set that the file called `name` belongs to, by their names. */
bool heft_folder_may_be_index_of(const char *index, const char *name);
/* Calls fn with every name in it. */
heft_status heft_folder_list(int dir, void (*fn)(void *arg, const char *name), void *arg,
                             heft_error *err);

/* ---- past the system's cache, direct_read.c ---- */

typedef struct heft_direct heft_direct;
/* A way past the cache to the file that fd is and that is mapped at map, or not at all; NULL: there is
 * none.  Both are borrowed. */
heft_direct *heft_direct_open(int fd, const void *map, uint64_t size);
void heft_direct_close(heft_direct *d);
/* Bytes from off on, which may be fewer than len, even none: the rest is for an ordinary read.  From any
 * number of threads at once. */
size_t heft_direct_read(heft_direct *d, uint64_t off, void *buf, size_t len);

/* ---- temporary files, scratch.c ---- */

/* In a directory, or where $TMPDIR says; both as heft_host.scratch. */
heft_status heft_scratch_in(heft_scratch **out, int dir, uint64_t bytes, heft_error *err);
heft_status heft_scratch_temporary(heft_scratch **out, uint64_t bytes, heft_error *err);

/* ---- what this build has ---- */

/* The descriptor of a source that is a file, else -1; borrowed. */
int heft_source_descriptor(const heft_source *s);

extern const heft_allocator heft_libc_allocator;
extern const heft_executor heft_all_threads;
void heft_os_entropy(void *buf, size_t len);
extern const heft_digest heft_isal_crc32, heft_isal_crc32c; /* crc_isal.c */
extern const heft_digest heft_openssl_sha256;               /* digest_openssl.c */
extern const heft_digest heft_xxhash_xxh3;                  /* digest_xxhash.c */
extern const heft_codec heft_zstd_codec;                    /* zstd.c */
extern const heft_codec heft_inflate_codec;                 /* inflate.c */

/* ---- mappings that may lose their file, mapping_guard.c ---- */

typedef struct heft_guard heft_guard;
/* NULL: no memory. */
heft_guard *heft_guard_new(void *base, size_t len);
void heft_guard_free(heft_guard *g);
/* Between the two, a fault in the mapping is remembered instead of ending the program. */
void heft_guard_arm(heft_guard *g);
void heft_guard_disarm(heft_guard *g);
bool heft_guard_tripped(const heft_guard *g);

#endif
