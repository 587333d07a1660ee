/* chunks.h - a range of bytes from the first to the last, in chunks that stay in the processor's cache. */
#ifndef HEFT_CHUNKS_H
#define HEFT_CHUNKS_H
#include "base/error.h"

typedef struct heft_chunks {
    const uint8_t *data; /* the chunk: lent, or in buf once the caller has read it */
    uint8_t *buf;        /* NULL: the bytes are lent */
    size_t len;          /* of the chunk */
    uint64_t at, left;   /* bytes of the range before the chunk and after it */
    size_t capacity;     /* of buf */
    const heft_allocator *al;
} heft_chunks;

/* lent: the range in memory, or NULL: the caller reads each chunk into buf.  heft_chunks_close() must follow, also
 * after an error. */
heft_status heft_chunks_open(heft_chunks *c, const heft_allocator *al, const void *mapped,
                             uint64_t length, heft_error *err);
/* Go to the first chunk, or to the next one; false: none is left, and len is 0. */
bool heft_chunks_next(heft_chunks *c);
void heft_chunks_close(heft_chunks *c);

#endif
