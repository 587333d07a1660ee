/* chunks.c - iterates over a range of bytes in chunks. */
#include "core/read/input_window.h"

#include "base/arena.h"

/* If the alignment is larger, glibc 2.36 does not reuse the buffer that was freed last, and each
 * new one costs 64 page faults. */
enum { CHUNK = 256 << 10, ALIGNMENT = 16 };

heft_status heft_chunks_open(heft_chunks *c, const heft_allocator *al, const void *mapped,
                             uint64_t length, heft_error *err)
{
    *c = (heft_chunks){ .data = mapped, .left = length, .unit = 1, .al = al };
    if (mapped)
        return HEFT_OK;
    c->capacity = length < CHUNK ? (size_t)length + 1 : CHUNK;
    c->data = c->buf = heft_alloc(al, c->capacity, ALIGNMENT);
    if (c->buf)
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_NOMEM, "no memory for a buffer to read %U bytes", length);
}

bool heft_chunks_next(heft_chunks *c)
{
    if (!c->buf)
        c->data += c->len;
    size_t most = CHUNK - CHUNK % c->unit;
    c->at += c->len;
    c->len = c->left < most ? (size_t)c->left : most;
    c->left -= c->len;
    return c->len;
}

void heft_chunks_close(heft_chunks *c)
{
    heft_free(c->al, c->buf, c->capacity, ALIGNMENT);
    c->buf = NULL;
}
