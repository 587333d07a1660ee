/* work.h - process many tensors on all processors, with a common progress bar and error. */
#ifndef HEFT_CLI_WORK_H
#define HEFT_CLI_WORK_H
#include <pthread.h>

#include <heft/check.h>
#include <heft/heft_ext.h>

#include "process/command_session.h"
#include "process/progress_line.h"

enum {
    WORK_CHUNK = 1 << 20, /* bytes processed at a time */
    WORK_KEPT = 256 << 20 /* most bytes that all readers together keep in memory */
};

typedef struct work {
    const session *session;
    void *ctx;
    /* file of the progress bar; after an error, the file that could not be read */
    const char *path;
    progress bar;
    uint64_t done, total; /* bytes */
    uint64_t kept;        /* bytes that readers keep in memory */
    bool stopped;
    heft_error err;
    pthread_mutex_t lock;
} work;

/* Call fn for every i < n, on the threads of the session. On failure w->err and w->path hold the
 * first error. */
heft_status work_run(work *w, size_t n, void (*fn)(void *work, size_t i));
/* Report progress from fn. Return false if the work must stop. */
bool work_step(work *w, uint64_t bytes);
/* Report from fn that reading `path` failed, and stop the work. */
void work_fail(work *w, const char *path, const heft_error *err);

/* Read a part in chunks of whole blocks.  In ascending order the chunks of a large part are read
 * into a buffer, where they are in the processor's cache; each mapped page would cost a fault.  In
 * other orders, and for small parts, the chunks lie in the mapped file, if the file is mapped. */
typedef struct chunk_reader {
    const heft_file *f;
    const char *path;
    uint32_t part;
    uint64_t length;
    const uint8_t *mapped; /* the whole part, or NULL */
    bool is_read;          /* chunks in ascending order are read although the part is mapped */
    uint8_t *buf;
    heft_stream *stream;
    heft_checked_read *checks; /* verifies the first pass, or NULL */
    uint64_t at;               /* bytes read from the stream */
    uint8_t *kept;             /* the part's first kept_bytes bytes, or NULL */
    uint64_t kept_bytes;
    work *work;
} chunk_reader;

/* Open a reader. checks verifies the digests of the bytes read, or is NULL. On failure the work is
 * stopped. */
bool chunk_reader_open(chunk_reader *p, work *w, const heft_file *f, const char *path,
                       uint32_t part, heft_checked_read *checks);
void chunk_reader_close(chunk_reader *p);
/* Keep the bytes of the part in memory for a second pass: a second read would request the bytes
 * of a server again.  A mapped part is read twice, and so is a part beyond WORK_KEPT. */
void chunk_reader_keep(chunk_reader *p);
/* Return bytes [from, from + len), len at most WORK_CHUNK. NULL on failure; the work is stopped. */
const uint8_t *chunk_reader_at(chunk_reader *p, work *w, uint64_t from, size_t len);
/* Return the length of the chunk at `from`: whole blocks of type t, at most as many as stay in
 * the processor's cache. */
size_t chunk_length(uint64_t from, uint64_t length, heft_dtype t);

#endif
