/* chunks.h - iterates over a range of bytes in chunks that fit into the processor's cache. */
#ifndef HEFT_CHUNKS_H
#define HEFT_CHUNKS_H
#include "base/error.h"

typedef struct heft_chunks {
    const uint8_t *data; /* the chunk: mapped, or buf once the caller has filled it */
    uint8_t *buf;        /* NULL: the bytes are mapped */
    size_t len;          /* length of the chunk */
    uint64_t at, left;   /* bytes of the range before and after the chunk */
    size_t capacity;     /* size of buf */
    size_t unit;         /* a chunk has whole units of this many bytes, except for the last; 1 */
    const heft_allocator *al;
} heft_chunks;

/* mapped: the range in memory, or NULL if the caller reads each chunk into buf.  Call
 * heft_chunks_close() afterwards, also after an error. */
heft_status heft_chunks_open(heft_chunks *c, const heft_allocator *al, const void *mapped,
                             uint64_t length, heft_error *err);
/* Advance to the first or next chunk.  Return false, with len 0, at the end. */
bool heft_chunks_next(heft_chunks *c);
void heft_chunks_close(heft_chunks *c);

#endif
