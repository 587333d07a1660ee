/* sink_stream.c - a pipe, a device or a descriptor of the caller's, written front to back. */
#include <errno.h>
#include <stdlib.h>

#include "port/sink_file.h"

typedef struct stream_sink {
    heft_sink base;
    const heft_disk *disk;
    int fd;
    bool own, syncs;
} stream_sink;

static heft_status fail(heft_error *err, int os)
{
    return heft_os_error(err, os, "writing failed");
}

static heft_status write_next(heft_sink *s, const void *data, size_t len, heft_error *err)
{
    const stream_sink *f = (const stream_sink *)s;
    const uint8_t *p = data;
    while (len) {
        ssize_t n = f->disk->append(f->fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail(err, n ? errno : ENOSPC);
        p += n;
        len -= (size_t)n;
    }
    return HEFT_OK;
}

static void discard(heft_sink *s)
{
    const stream_sink *f = (const stream_sink *)s;
    if (f->own)
        f->disk->close(f->fd);
    free(s);
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    const stream_sink *f = (const stream_sink *)s;
    heft_status st = HEFT_OK;
    /* pipes and most devices cannot be synced */
    if (f->syncs && heft_disk_sync(f->disk, f->fd) && errno != EINVAL && errno != EROFS &&
        errno != ENOTSUP)
        st = fail(err, errno);
    if (f->own && f->disk->close(f->fd) && errno != EINTR && !st)
        st = fail(err, errno);
    free(s);
    return st;
}

static const heft_sink_ops ops = {
    .size = sizeof(heft_sink_ops),
    .write = write_next,
    .finish = finish,
    .discard = discard,
};

heft_status heft_stream_sink(heft_sink **out, const heft_disk *disk, int fd, bool own, bool syncs,
                             heft_error *err)
{
    stream_sink *f = calloc(1, sizeof *f);
    if (!f) {
        if (own)
            disk->close(fd);
        return heft_error_no_memory(err, "for a sink");
    }
    *f = (stream_sink){ { &ops }, disk, fd, own, syncs };
    *out = &f->base;
    return HEFT_OK;
}

heft_status heft_sink_open_fd(heft_sink **out, int fd, heft_error *err)
{
    *out = NULL;
    return heft_stream_sink(out, &heft_system_disk, fd, false, false, err);
}
