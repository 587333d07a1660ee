/* sink_memory.c - a sink that writes to memory.
 *
 * If the size is reserved, workers write disjoint ranges concurrently.  If the size is unknown,
 * as with compressed parts, writes come in sequence, and the memory grows. */
#include "base/checked_math.h"

#include "base/error.h"
#include "core/read/file.h"
#include <heft/write.h>

enum { ALIGN = 64, MIN_CAPACITY = 4096 };

typedef struct memory_sink {
    heft_sink base;
    const heft_allocator *allocator;
    heft_blob *to; /* set when the file is complete */
    uint8_t *bytes;
    size_t capacity, end; /* end: past the last byte written */
    bool is_reserved;
} memory_sink;

static heft_status no_memory(heft_error *err, uint64_t bytes)
{
    return heft_error_plain(err, HEFT_E_NOMEM, "no memory for a file of %U bytes", bytes);
}

static heft_status grow(memory_sink *m, size_t capacity, heft_error *err)
{
    uint8_t *grown = m->allocator->resize(m->allocator->ctx, m->bytes, m->capacity, capacity,
                                          ALIGN);
    if (!grown)
        return no_memory(err, capacity);
    m->bytes = grown;
    m->capacity = capacity;
    return HEFT_OK;
}

static heft_status reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    memory_sink *m = (memory_sink *)s;
    if (size > SIZE_MAX)
        return no_memory(err, size);
    heft_status st = size > m->capacity ? grow(m, (size_t)size, err) : HEFT_OK;
    m->is_reserved = !st;
    m->end = st ? m->end : (size_t)size;
    return st;
}

/* Double the capacity, so that all copies together move no more bytes than the file has. */
static heft_status write_growing(memory_sink *m, size_t off, const void *data, size_t len,
                                 heft_error *err)
{
    size_t end = off + len, doubled = m->capacity > SIZE_MAX / 2 ? SIZE_MAX : 2 * m->capacity;
    size_t needed = end > doubled ? end : doubled;
    if (end > m->capacity)
        HEFT_TRY(grow(m, needed > MIN_CAPACITY ? needed : MIN_CAPACITY, err));
    if (off > m->end)
        memset(m->bytes + m->end, 0, off - m->end);
    memcpy(m->bytes + off, data, len);
    m->end = end > m->end ? end : m->end;
    return HEFT_OK;
}

static heft_status write_at(heft_sink *s, uint64_t off, const void *data, size_t len,
                            heft_error *err)
{
    memory_sink *m = (memory_sink *)s;
    if (off > SIZE_MAX || len > SIZE_MAX - off)
        return no_memory(err, off);
    if (!m->is_reserved)
        return write_growing(m, (size_t)off, data, len, err);
    if (!heft_range_in((heft_range){ off, len }, m->end))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "%U bytes at %U exceed the reserved size %U",
                                (uint64_t)len, off, (uint64_t)m->end);
    memcpy(m->bytes + off, data, len);
    return HEFT_OK;
}

static heft_status read_at(heft_sink *s, uint64_t off, void *buf, size_t len, heft_error *err)
{
    const memory_sink *m = (const memory_sink *)s;
    if (!heft_range_in((heft_range){ off, len }, m->end))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "%U bytes at %U are past the end at %U",
                                (uint64_t)len, off, (uint64_t)m->end);
    memcpy(buf, m->bytes + off, len);
    return HEFT_OK;
}

static void discard(heft_sink *s)
{
    memory_sink *m = (memory_sink *)s;
    const heft_allocator *al = m->allocator;
    heft_free(al, m->bytes, m->capacity, ALIGN);
    heft_free(al, m, sizeof *m, ALIGN);
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    memory_sink *m = (memory_sink *)s;
    heft_status st = m->capacity > m->end && m->end ? grow(m, m->end, err) : HEFT_OK;
    if (!st && m->end) {
        *m->to = (heft_blob){ m->bytes, m->end, m->allocator };
        m->bytes = NULL;
    }
    discard(s);
    return st;
}

static const heft_sink_ops memory_ops = {
    .size = sizeof(heft_sink_ops),
    .write_at = write_at,
    .reserve = reserve,
    .finish = finish,
    .discard = discard,
    .read_at = read_at,
};

heft_status heft_sink_open_memory(heft_sink **out, heft_blob *to, const heft_host *host,
                                  heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    *out = NULL;
    *to = (heft_blob){ NULL, 0, NULL };
    heft_status st = heft_host_resolve(&host, host, err);
    if (st)
        return heft_error_end(err, st);
    memory_sink *m = heft_alloc(host->allocator, sizeof *m, ALIGN);
    if (!m)
        return no_memory(err, sizeof *m);
    *m = (memory_sink){ .base = { &memory_ops }, .allocator = host->allocator, .to = to };
    *out = &m->base;
    return HEFT_OK;
}

void heft_blob_free(heft_blob *b)
{
    heft_free(b->allocator, b->data, b->size, ALIGN);
    *b = (heft_blob){ NULL, 0, NULL };
}
