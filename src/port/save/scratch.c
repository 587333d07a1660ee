/* scratch.c - an unnamed temporary file, in the output's directory or in the directory for
 * temporary files.
 *
 * The file is written by ordinary system calls, which report a full or failing disk, and mapped
 * once it is complete. The system deletes the file when the last descriptor is closed, however the
 * program ends. */
#include "port/save/sink_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct scratch {
    heft_scratch base;
    int fd;
    uint64_t written;
    void *map; /* or NULL */
    heft_guard *guard;
} scratch;

static heft_status write_next(heft_scratch *base, const void *data, size_t len, heft_error *err)
{
    scratch *s = (scratch *)base;
    heft_error cause;
    if (heft_disk_write_all(&heft_system_disk, s->fd, s->written, data, len, &cause))
        return heft_os_error(err, cause.os, "writing a temporary file failed");
    s->written += len;
    return HEFT_OK;
}

static heft_status map_scratch(heft_scratch *base, const void **out, heft_error *err)
{
    scratch *s = (scratch *)base;
    void *map = heft_pages_map(s->fd, s->written, false);
    if (!map)
        return heft_os_error(err, errno, "a temporary file cannot be mapped");
    s->map = map;
    s->guard = heft_guard_new(map, (size_t)s->written);
    if (!s->guard)
        return heft_error_no_memory(err, "to guard a mapping");
    heft_guard_arm(s->guard);
    *out = map;
    return HEFT_OK;
}

heft_status heft_scratch_read(heft_scratch *base, uint64_t at, void *buf, size_t len,
                              heft_error *err)
{
    const scratch *s = (const scratch *)base;
    heft_error cause;
    if (heft_disk_read_all(&heft_system_disk, s->fd, at, buf, len, &cause))
        return heft_os_error(err, cause.os, "reading a temporary file failed");
    return HEFT_OK;
}

static heft_status state(heft_scratch *base, heft_error *err)
{
    const scratch *s = (const scratch *)base;
    if (!s->guard || !heft_guard_tripped(s->guard))
        return HEFT_OK;
    return heft_os_error(err, EIO, "reading a temporary file failed");
}

static void close_scratch(heft_scratch *base)
{
    scratch *s = (scratch *)base;
    if (s->guard) {
        heft_guard_disarm(s->guard);
        heft_guard_free(s->guard);
    }
    if (s->map)
        heft_pages_unmap(s->map, (size_t)s->written);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}

static const heft_scratch_ops ops = {
    .size = sizeof(heft_scratch_ops),
    .write = write_next,
    .map = map_scratch,
    .check = state,
    .close = close_scratch,
};

/* ---- the file ---- */

heft_status heft_scratch_in(heft_scratch **out, int dir, uint64_t bytes, heft_error *err)
{
    scratch *s = calloc(1, sizeof *s);
    char message[64] = "a temporary file cannot be created";
    heft_staged staged;
    *out = NULL;
    if (!s)
        return heft_error_no_memory(err, "for a temporary file");
    s->base.ops = &ops;
    int os = heft_staged_open(&staged, &heft_system_disk, dir, "heft", 0600);
    heft_staged_drop_name(&staged);
    s->fd = staged.fd;
    if (!os) { /* notice a full disk before anything is decoded */
        snprintf(message, sizeof message, "cannot reserve %llu bytes for a temporary file",
                 (unsigned long long)bytes);
        os = heft_disk_reserve(&heft_system_disk, s->fd, bytes);
    }
    if (os) {
        close_scratch(&s->base);
        return heft_os_error(err, os, message);
    }
    *out = &s->base;
    return HEFT_OK;
}

/* The default is /var/tmp, since /tmp may be in memory. */
heft_status heft_scratch_temporary(heft_scratch **out, uint64_t bytes, heft_error *err)
{
    const char *tmpdir = secure_getenv("TMPDIR"), *path = tmpdir && *tmpdir ? tmpdir : "/var/tmp";
    heft_error cause;
    *out = NULL;
    int dir = heft_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    heft_status st = dir < 0 ? heft_os_error(&cause, errno,
                                             "the directory for temporary files cannot be opened")
                             : heft_scratch_in(out, dir, bytes, &cause);
    if (dir >= 0)
        close(dir);
    if (st)
        heft_error_os(err, heft_error_plain(err, st, "%s: %s", path, cause.message), cause.os);
    return st;
}
