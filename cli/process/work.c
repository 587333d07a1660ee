#include "process/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    READ_MIN = 64 << 10, /* smaller parts are not copied out of a mapped file */
    CACHED = 256 << 10   /* a chunk of this size stays in the processor's cache */
};

heft_status work_run(work *w, size_t n, void (*fn)(void *work, size_t i))
{
    heft_executor threads = w->session->executor;
    pthread_mutex_init(&w->lock, NULL);
    progress_begin(&w->bar, w->path);
    threads.run(threads.ctx, n, fn, w);
    progress_end(&w->bar);
    pthread_mutex_destroy(&w->lock);
    return w->stopped ? w->err.status : HEFT_OK;
}

bool work_step(work *w, uint64_t bytes)
{
    pthread_mutex_lock(&w->lock);
    w->done += bytes;
    progress_step(&w->bar, w->done, w->total);
    bool go = !w->stopped;
    pthread_mutex_unlock(&w->lock);
    return go;
}

void work_fail(work *w, const char *path, const heft_error *err)
{
    pthread_mutex_lock(&w->lock);
    if (!w->stopped) {
        w->stopped = true;
        w->path = path;
        w->err = *err;
    }
    pthread_mutex_unlock(&w->lock);
}

/* Restart at the first byte. Only the first pass verifies digests. */
static bool restart(chunk_reader *p, work *w)
{
    heft_error err;
    heft_stream_close(p->stream);
    p->stream = NULL;
    p->at = 0;
    heft_status st = p->checks ? heft_checked_read_stream(&p->stream, p->checks, p->part, &err)
                               : heft_stream_open(&p->stream, p->f, p->part, &err);
    p->checks = NULL;
    if (st)
        work_fail(w, p->path, &err);
    return !st;
}

bool chunk_reader_open(chunk_reader *p, work *w, const heft_file *f, const char *path,
                       uint32_t part, heft_checked_read *checks)
{
    *p = (chunk_reader){ .f = f, .path = path, .part = part, .checks = checks, .work = w };
    p->length = heft_part_at(f, part).length;
    p->mapped = w->session->limits.read_bytes ? NULL /* views do not count */
                                              : heft_part_view(f, part);
    p->is_read = p->length >= READ_MIN && heft_file_is_mapped(f);
    if (!work_step(w, 0)) /* another thread failed */
        return false;
    bool is_viewed = p->mapped && !p->is_read;
    if ((is_viewed && !checks) || !p->length)
        return true;
    p->buf = is_viewed ? NULL : malloc(p->length < WORK_CHUNK ? (size_t)p->length : WORK_CHUNK);
    if (p->buf || is_viewed)
        return restart(p, w);
    heft_error err = { .status = HEFT_E_NOMEM, .offset = HEFT_NOWHERE };
    snprintf(err.message, sizeof err.message, "no memory for a buffer");
    work_fail(w, path, &err);
    return false;
}

void chunk_reader_keep(chunk_reader *p)
{
    work *w = p->work;
    pthread_mutex_lock(&w->lock);
    if (p->buf && !p->mapped && p->length <= WORK_KEPT - w->kept)
        p->kept = malloc((size_t)p->length);
    w->kept += p->kept ? p->length : 0;
    pthread_mutex_unlock(&w->lock);
}

static void drop_kept(chunk_reader *p)
{
    if (!p->kept)
        return;
    pthread_mutex_lock(&p->work->lock);
    p->work->kept -= p->length;
    pthread_mutex_unlock(&p->work->lock);
    free(p->kept);
    p->kept = NULL;
}

/* Append a chunk to the bytes that are kept. */
static const uint8_t *keep(chunk_reader *p, uint64_t from, const void *data, size_t len)
{
    if (!p->kept || from != p->kept_bytes)
        return data;
    if (data != p->kept + from)
        memcpy(p->kept + from, data, len);
    p->kept_bytes += len;
    return p->kept + from;
}

void chunk_reader_close(chunk_reader *p)
{
    drop_kept(p);
    free(p->buf);
    heft_stream_close(p->stream);
    p->buf = NULL;
    p->stream = NULL;
}

const uint8_t *chunk_reader_at(chunk_reader *p, work *w, uint64_t from, size_t len)
{
    heft_error err;
    const void *data = p->buf;
    bool is_next = p->stream && from == p->at;
    if (!is_next && p->mapped && (from || !p->is_read))
        return p->mapped + from;
    if (p->kept && from + len <= p->kept_bytes)
        return p->kept + from;
    if (!is_next && !restart(p, w))
        return NULL;
    is_next = from == p->at;
    heft_status st = !is_next     ? heft_part_read(p->buf, p->f, p->part, from, len, &err)
                     : p->is_read ? heft_stream_read(p->buf, p->stream, len, &err)
                                  : heft_stream_view(&data, p->stream, p->buf, len, &err);
    p->at += is_next ? len : 0;
    if (!st)
        return keep(p, from, data, len);
    work_fail(w, p->path, &err);
    return NULL;
}

size_t chunk_length(uint64_t from, uint64_t length, heft_dtype t)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    size_t block = d ? d->block_bytes : 1, most = CACHED / block * block;
    return length - from < most ? (size_t)(length - from) : most;
}
