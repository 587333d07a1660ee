/* frame_output.h - append compressed parts in the order of arrival. Parts are cut into chunks of a
 * fixed size, a chunk becomes a frame; the host's threads encode chunks in parallel, and a single
 * thread writes the frames in order. The file does not depend on the number of threads.
 *
 * This room writes and plans what follows the planned part of a file: frames of compressed parts,
 * additions while a file grows. Appending to an existing file is an edit (core/edit). */
#ifndef HEFT_FRAME_OUTPUT_H
#define HEFT_FRAME_OUTPUT_H
#include "core/check/checksum_sweep.h"
#include "core/read/progress.h"
#include "core/read/stream.h"
#include "core/write/plan/plan.h"

enum { HEFT_APPEND_MAX_CHUNKS = 12 }; /* chunks in flight */

typedef struct heft_append_chunk {
    uint32_t part;
    uint64_t from;  /* offset of the chunk in the part */
    size_t len;     /* bytes of content */
    bool last;      /* last chunk of the part */
    uint8_t *raw;   /* content, filled by the caller; capacity heft_appender.chunk_bytes */
    size_t encoded; /* bytes in out, after encoding */
    uint8_t *out;
    const heft_codec *codec; /* codec of the encoder; NULL: no encoder yet */
    int level;
    void *encoder;
    heft_status status; /* result of filling and encoding */
    heft_error err;
} heft_append_chunk;

/* Fill chunk i, whose part, offset and length are set.  Called on several threads at a time. */
typedef heft_status (*heft_append_fill)(void *ctx, uint32_t i, heft_error *err);

typedef struct heft_appender {
    heft_planner *p;
    heft_sink *sink;
    size_t chunk_bytes;      /* content bytes of each chunk but the last of a part */
    size_t encoded_capacity; /* capacity of out: the most that an encoded chunk can take */
    heft_append_chunk chunks[HEFT_APPEND_MAX_CHUNKS];
    uint32_t chunk_count; /* chunks in use */
    uint64_t at;          /* end of the file so far */
    uint64_t part_start;
    heft_memory mem;
    heft_vec frames; /* heft_frame, of the part being written, for formats that ask for frames */
    heft_running_digest part_digest; /* digest of the stored or decoded bytes of that part */
    heft_error *err;
} heft_appender;

heft_status heft_append_open(heft_appender *a, heft_planner *p, heft_sink *sink, heft_error *err);
/* Fill and encode the first n chunks on the host's threads.  fill may be NULL: they are filled.
 * heft_append_write_batch() reports failures. */
void heft_append_encode_batch(heft_appender *a, uint32_t n, heft_append_fill fill, void *ctx);
/* Write the first n chunks in order, up to one that failed, and return its status. */
heft_status heft_append_write_batch(heft_appender *a, uint32_t n, heft_error *err);
/* Write an encoded chunk.  Chunks must arrive in the order of the file: all of a part, then the
 * next part. */
heft_status heft_append_write(heft_appender *a, const heft_append_chunk *s, heft_error *err);
void heft_append_close(heft_appender *a); /* a zeroed struct is harmless */

#endif
