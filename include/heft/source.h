/* source.h - where the bytes of a model come from: files and memory, bytes that the caller feeds,
 * several open files.  The general rules of heft.h apply.
 *
 * Stability: stable. */
#ifndef HEFT_SOURCE_H
#define HEFT_SOURCE_H
#include <heft/heft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sources (heft_ext.h: sources of your own) -------------------------------------------- */

typedef enum heft_access {
    /* Memory-mapped if possible, except on file systems of servers and of other programs (NFS,
     * FUSE, ...) with slow reads: there like HEFT_ACCESS_READ, or like HEFT_ACCESS_DIRECT where the
     * page cache would not keep the bytes. */
    HEFT_ACCESS_AUTO,
    HEFT_ACCESS_MAP,
    /* pread only: no mapping, no signal handler.  Where reads are slow, threads read ahead of
     * sequential reads, up to 192 MiB in memory for each file. */
    HEFT_ACCESS_READ,
    HEFT_ACCESS_POPULATE, /* mapped, all pages in memory before the call returns */
    /* AUTO, but bytes missing in the page cache when the file is opened are read with O_DIRECT.
     * Faster only for a cold file that is read once; an executor with twice as many threads as
     * processors keeps the disk busy while other threads copy. */
    HEFT_ACCESS_DIRECT
} heft_access;
/* Open a regular file as a source; HEFT_E_IO for other paths.  If a mapped file shrinks while it is
 * open, the call that meets the missing bytes and all later calls return HEFT_E_IO; for borrowed
 * bytes see heft_part_view(). */
HEFT_API HEFT_MUST_CHECK heft_status heft_source_open_file(heft_source **out, const char *path,
                                                           heft_access how, heft_error *err);
/* Make a source of len bytes in memory; data is borrowed until the source is closed. */
HEFT_API HEFT_MUST_CHECK heft_status heft_source_open_memory(heft_source **out, const void *data,
                                                             size_t len, heft_error *err);
/* Close a source that no file has taken.  NULL is ignored. */
HEFT_API void heft_source_close(heft_source *s);

/* ---- feeding: open without a source, in browsers, event loops and firmware ---------------- */

/* Begin to open a file of file_size bytes that the caller feeds.  The library never waits: the
 * caller asks for the needed ranges and feeds the bytes.
 *     heft_file_begin(&f, size, NULL, &err);
 *     while ((st = heft_file_step(f, &err)) == HEFT_AGAIN)
 *         for each range of heft_file_needs(f, &ranges): heft_file_feed(f, ...);
 * On failure close f.  If the whole file is fed at once, the bytes are borrowed until
 * heft_file_close() and tensors can be viewed and read; smaller pieces are copied, and only the
 * index is available.  HEFT_E_ARGUMENT: the range passes the end, or the file is open already. */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_begin(heft_file **out, uint64_t file_size,
                                                     const heft_open_options *opt, heft_error *err);
/* Continue parsing.  HEFT_AGAIN: feed the ranges of heft_file_needs() and call again. */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_step(heft_file *f, heft_error *err);
/* Return the number of needed ranges; *out stays valid until the next heft_file_step(). */
HEFT_API size_t heft_file_needs(const heft_file *f, const heft_range **out);
/* Feed bytes of the file at `offset`.  See heft_file_begin(). */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_feed(heft_file *f, uint64_t offset, const void *data,
                                                    size_t len, heft_error *err);
/* Open a file in place.  data holds the whole file, for example in the flash memory of a board, and
 * is borrowed until heft_file_close(); heft_part_view() returns pointers into data.  A program
 * without other functions that open files can be linked without the code for shards, gzip and
 * compressed parts.
 *   HEFT_E_UNSUPPORTED  the model has more files, or the index cannot be read without decoding
 *   HEFT_E_FORMAT       also for a file that is compressed with gzip as a whole */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_open_in_place(heft_file **out, const void *data,
                                                             size_t len,
                                                             const heft_open_options *opt,
                                                             heft_error *err);
/* Give a source of the same bytes to a file that the caller feeds.  The library reads parts of
 * tensors and checksums from the source; the index is still fed.  Call this function once, after
 * heft_file_begin().  A read may be repeated after the source has failed.
 *   HEFT_E_ARGUMENT  the file has a source already, or the sizes differ */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_set_source(heft_file *f, heft_source *take,
                                                          heft_error *err);

/* ---- joining files ------------------------------------------------------------------------ */

/* If two files have a tensor of the same name: */
typedef enum heft_duplicates {
    HEFT_DUPLICATES_REFUSE, /* fail with HEFT_E_ARGUMENT */
    HEFT_DUPLICATES_FIRST,  /* keep the first */
    HEFT_DUPLICATES_LAST    /* keep the last */
} heft_duplicates;
typedef struct heft_join_options {
    size_t size; /* = sizeof(heft_join_options) */
    heft_duplicates duplicates;
    /* The metadata value of `key` differs between file number `file` and an earlier file.  May be
     * NULL. */
    void (*on_conflict)(void *ctx, heft_str key, uint32_t file);
    void *ctx;
} heft_join_options;
#define HEFT_JOIN_OPTIONS_INIT                                        \
    {                                                                 \
        sizeof(heft_join_options), HEFT_DUPLICATES_REFUSE, NULL, NULL \
    }
/* Present several open files as one model, in the given order.  The files must stay open until *out
 * is closed.  Of metadata with the same key the first value is kept. */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_join(heft_file **out, const heft_file *const *files,
                                                    uint32_t count, const heft_join_options *opt,
                                                    heft_error *err);

#ifdef __cplusplus
}
#endif
#endif
