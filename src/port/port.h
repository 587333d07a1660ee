/* port.h - declarations shared by the files of src/port.
 *
 * What the system, other libraries and servers provide: system (calls of the system and sources on
 * files), libraries (one file for each library), folders (names in a folder), save (files that
 * appear whole), remote (servers), windows. What is decided about models is in src/local and
 * src/folder. */
#ifndef HEFT_PORT_H
#define HEFT_PORT_H
#include <heft/heft_ext.h>
#include <heft/remote.h>

#include "base/error.h"
#include "base/sized.h"

/* Set the message followed by the system's description of errno value `os`; return HEFT_E_IO. */
heft_status heft_os_error(heft_error *err, int os, const char *what);

/* openat(), repeated after signals (EINTR). */
int heft_open_at(int dir, const char *path, int flags);
/* Open the directory that contains the path; -1 with errno set after a failure. */
int heft_open_folder_of(const char *path, int flags);

/* Open a regular file by a path relative to the directory dir.  `flags` are added to the flags of
 * open(). */
heft_status heft_source_at(heft_source **out, int dir, const char *path, int flags,
                           heft_access access, heft_error *err);

/* Open a source on a duplicate of the descriptor, which stays the caller's. */
heft_status heft_source_of(heft_source **out, int fd, heft_error *err);

typedef struct heft_folder_listing heft_folder_listing;
/* List a folder, for heft_folder_choose().  *l is initialised, even after an error. */
heft_status heft_folder_listing_read(heft_folder_listing *l, const char *path, heft_error *err);
/* Call fn with every name in the directory. */
heft_status heft_folder_list(int dir, void (*fn)(void *arg, const char *name), void *arg,
                             heft_error *err);

/* ---- reads past the page cache, direct_read.c ---- */

/* Open the file of descriptor fd again, with O_DIRECT; -1 if the file system does not support
 * that. */
int heft_direct_descriptor(int fd);
typedef struct heft_direct heft_direct;
/* Open the file of descriptor fd for direct reads.  map: the whole file mapped, or NULL.  fd and
 * map are borrowed. Returns NULL if the file system does not support direct reads or memory is
 * short. */
heft_direct *heft_direct_open(int fd, const void *map, uint64_t size);
void heft_direct_close(heft_direct *d);
/* Read up to len bytes at offset off; return their number, which may be 0.  The caller reads the
 * rest by ordinary reads.  Safe to call from several threads. */
size_t heft_direct_read(heft_direct *d, uint64_t off, void *buf, size_t len);

/* ---- temporary files, scratch.c ---- */

/* Create a temporary file of `bytes` bytes in a directory, or in $TMPDIR (default /var/tmp).  The
 * latter is the default heft_host.scratch. */
heft_status heft_scratch_in(heft_scratch **out, int dir, uint64_t bytes, heft_error *err);
heft_status heft_scratch_temporary(heft_scratch **out, uint64_t bytes, heft_error *err);
/* Read bytes that have been written to storage of heft_scratch_temporary(), on any thread, while
 * further bytes are written. */
heft_status heft_scratch_read(heft_scratch *base, uint64_t at, void *buf, size_t len,
                              heft_error *err);

/* ---- memory and processors, system_memory.c, processors.c ---- */

/* Return a large block, such as a column of a large index, or grow or shrink the block `old` of
 * old_size bytes; NULL without memory: `old` is as before. */
void *heft_large_map(void *old, size_t old_size, size_t new_size);
void heft_large_unmap(void *block, size_t size);
/* Return a block with an alignment larger than that of malloc(). */
void *heft_aligned_new(size_t align, size_t size);
void heft_aligned_free(void *block);
/* Return the number of processors that the process may use, at least 1. */
uint32_t heft_processors(void);

/* ---- digests of libcrypto, source_digest.c ---- */

enum { HEFT_MD5_BYTES = 16 };
/* Compute the MD5 of the bytes, which S3 uses as a name; false: this build has no libcrypto. */
bool heft_md5(uint8_t out[HEFT_MD5_BYTES], const void *data, size_t len);

/* ---- mapped files, file_pages.c ---- */

size_t heft_page_size(void);
/* Return the clock by which the system stamps files, for clock_gettime(); where it has none of its
 * own, the clock of the day. */
int heft_file_clock(void);
/* Return true if a fault in a mapping of the file would end the program; then the file is read
 * instead, unless the caller asks for a mapping. */
bool heft_map_may_fault(int fd);
/* Map the whole file for reading; NULL with errno set after a failure.  populates: load every
 * page. */
void *heft_pages_map(int fd, uint64_t size, bool populates);
void heft_pages_unmap(void *map, size_t size);
/* Ways to open a file before its replacement: Windows does not replace mapped files. */
extern const heft_access heft_edit_access;
/* Ask the system to load a range of the file soon. */
void heft_pages_request(int fd, uint64_t off, uint64_t len);
/* Load whole pages of a mapping in one call; return false if the system cannot. */
bool heft_pages_populate(void *from, size_t len);
/* Release whole pages of a mapping, not of the page cache. */
void heft_pages_drop(void *from, size_t len);

/* ---- parts of the default host ---- */

/* Return the descriptor of a file source, borrowed, or -1 for other sources. */
int heft_source_descriptor(const heft_source *s);

extern const heft_allocator heft_libc_allocator;
extern const heft_executor heft_all_threads;
/* Threads for requests that take long, more than there are processors. */
extern const heft_executor heft_waiting_threads;
/* Return true on a thread of heft_waiting_threads. */
void heft_os_entropy(void *buf, size_t len);
extern const heft_digest heft_isal_crc32, heft_isal_crc32c;      /* crc_isal.c */
extern const heft_digest heft_openssl_sha256;                    /* digest_openssl.c */
extern const heft_digest heft_xxhash_xxh3, heft_xxhash_xxh3_128; /* digest_xxhash.c */
extern const heft_codec heft_zstd_codec;                         /* zstd.c */
extern const heft_codec heft_inflate_codec;                      /* inflate.c */

/* Implements heft_host.open_hdf5; libraries/hdf5_file.c. */
heft_status heft_hdf5_open(heft_container **out, heft_source *bytes, uint64_t memory,
                           heft_error *err);

/* ---- mappings of files that may be truncated, mapping_guard.c ---- */

typedef struct heft_guard heft_guard;
/* Register a mapping; returns NULL if there is no memory. */
heft_guard *heft_guard_new(void *base, size_t len);
void heft_guard_free(heft_guard *g);
/* While the guard is armed, an access past the end of the file trips the guard instead of ending
 * the program. */
void heft_guard_arm(heft_guard *g);
void heft_guard_disarm(heft_guard *g);
bool heft_guard_tripped(const heft_guard *g);

/* ---- the text of URLs, and the table of functions for URLs ---- */

/* Functions of a build with libcurl. */
typedef struct heft_remote {
    heft_status (*open_source)(heft_source **out, const char *url, const heft_url_options *opt,
                               heft_error *err);
    heft_status (*open_file)(heft_file **out, const char *url, const heft_open_options *opt,
                             const heft_url_options *url_opt, heft_error *err);
    heft_status (*open_sink)(heft_sink **out, const char *url, uint32_t flags,
                             const heft_url_options *opt, heft_error *err);
    heft_status (*remove_kept)(const char *resume, heft_error *err);
} heft_remote;
extern const heft_remote heft_curl_remote; /* remote/open_url.c */
/* Return the table of this build, or NULL. */
const heft_remote *heft_host_remote(void);

/* Return true after heft_url_interrupt(true). */
bool heft_url_is_interrupted(void);

/* Open a sink for a URL; flags: see heft_sink_open_file(). */
heft_status heft_sink_open_url(heft_sink **out, const char *url, uint32_t flags,
                               const heft_url_options *url_opt, heft_error *err);

/* Return the length of the URL without query and fragment; keys of S3 and names of the hub have
 * neither, and '?' and '#' are parts of them. */
size_t heft_url_before_query(const char *url);

/* Append the text to the string in a buffer.  All bytes are percent-encoded except unreserved bytes
 * and the bytes of `kept`.  Return false if the buffer is too small. */
bool heft_url_append(char *buf, size_t size, heft_str text, const char *kept);

#endif
