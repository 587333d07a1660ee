/* sink_stream.c - a sink that writes a pipe, a device or the caller's descriptor from start to
 * end. */
#include <errno.h>
#include <stdlib.h>

#include "port/save/sink_file.h"

typedef struct stream_sink {
    heft_sink base;
    const heft_disk *disk;
    int fd;
    bool owns_fd, syncs;
} stream_sink;

static heft_status write_next(heft_sink *s, const void *data, size_t len, heft_error *err)
{
    const stream_sink *stream = (const stream_sink *)s;
    const uint8_t *p = data;
    while (len) {
        ssize_t n = stream->disk->append(stream->fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return heft_os_error(err, n ? errno : ENOSPC, "writing failed");
        p += n;
        len -= (size_t)n;
    }
    return HEFT_OK;
}

static void discard(heft_sink *s)
{
    const stream_sink *stream = (const stream_sink *)s;
    if (stream->owns_fd)
        stream->disk->close(stream->fd);
    free(s);
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    const stream_sink *stream = (const stream_sink *)s;
    int os = stream->syncs && heft_disk_sync(stream->disk, stream->fd) ? errno : 0;
    if (os == EINVAL || os == EROFS || os == ENOTSUP) /* pipes and most devices cannot be synced */
        os = 0;
    if (stream->owns_fd && stream->disk->close(stream->fd) && errno != EINTR && !os)
        os = errno;
    free(s);
    return os ? heft_os_error(err, os, "writing failed") : HEFT_OK;
}

static const heft_sink_ops ops = {
    .size = sizeof(heft_sink_ops),
    .write = write_next,
    .finish = finish,
    .discard = discard,
};

heft_status heft_stream_sink(heft_sink **out, const heft_disk *disk, int fd, bool owns_fd,
                             bool syncs, heft_error *err)
{
    stream_sink *stream = calloc(1, sizeof *stream);
    if (!stream) {
        if (owns_fd)
            disk->close(fd);
        return heft_error_no_memory(err, "for a sink");
    }
    *stream = (stream_sink){ { &ops }, disk, fd, owns_fd, syncs };
    *out = &stream->base;
    return HEFT_OK;
}

heft_status heft_sink_open_fd(heft_sink **out, int fd, heft_error *err)
{
    *out = NULL;
    return heft_stream_sink(out, &heft_system_disk, fd, false, false, err);
}
