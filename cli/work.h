/* work.h - the same work on many tensors, on all processors, with one bar and one error. */
#ifndef HEFT_CLI_WORK_H
#define HEFT_CLI_WORK_H
#include <pthread.h>

#include <heft/heft_ext.h>

#include "progress_line.h"

enum { WORK_CHUNK = 1 << 20 }; /* bytes that are looked at at a time */

typedef struct work {
    void *ctx;
    const char *path; /* of the file whose reading failed */
    progress bar;
    uint64_t done, total; /* bytes */
    bool stopped;
    heft_error err;
    pthread_mutex_t lock;
} work;

/* Calls fn for every i below n.  Not HEFT_OK: w->err and w->path say what happened. */
heft_status work_run(work *w, size_t n, void (*fn)(void *work, size_t i));
/* From within fn: so many bytes are done.  False: the work is to stop. */
bool work_step(work *w, uint64_t bytes);
/* From within fn: reading path failed. */
void work_fail(work *w, const char *path, const heft_error *err);

/* A part read in pieces of whole blocks: lent where that is possible, else through a buffer, which is
 * quick from front to back only. */
typedef struct chunk_reader {
    const heft_file *f;
    const char *path;
    uint32_t part;
    uint64_t length;
    const uint8_t *mapped;
    uint8_t *buf;
    heft_stream *stream;
    heft_checked_read *checks; /* that the first pass over the bytes is part of; or NULL */
    uint64_t at;               /* bytes that the stream has given */
} chunk_reader;

/* checks: NULL, or what checks the digests of what is read.  False: no memory, and the work is stopped. */
bool chunk_reader_open(chunk_reader *p, work *w, const heft_file *f, const char *path,
                       uint32_t part, heft_checked_read *checks);
void chunk_reader_close(chunk_reader *p);
/* Bytes [from, from + len), len at most WORK_PIECE; NULL: could not be read, the work stops. */
const uint8_t *chunk_reader_at(chunk_reader *p, work *w, uint64_t from, size_t len);
/* Bytes of a piece from `from` on: whole blocks of type t, until the end. */
size_t chunk_length(uint64_t from, uint64_t length, heft_dtype t);

#endif
