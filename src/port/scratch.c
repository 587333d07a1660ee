/* scratch.c - a file that has no name, in the directory of the output or in that for temporary files.
 *
 * It is written with ordinary calls, which say what a full disk or a broken one has to say, and mapped when it is
 * whole.  The system takes it away with the last descriptor, however the program ends. */
#include "port/port.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
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
    const uint8_t *p = data;
    while (len) {
        ssize_t n = pwrite(s->fd, p, len, (off_t)s->written);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return heft_os_error(err, n ? errno : ENOSPC, "writing a temporary file failed");
        p += n;
        s->written += (size_t)n;
        len -= (size_t)n;
    }
    return HEFT_OK;
}

static heft_status lend(heft_scratch *base, const void **out, heft_error *err)
{
    scratch *s = (scratch *)base;
    void *map = s->written > SIZE_MAX
                    ? MAP_FAILED
                    : mmap(NULL, (size_t)s->written, PROT_READ, MAP_SHARED, s->fd, 0);
    if (map == MAP_FAILED)
        return heft_os_error(err, errno, "a temporary file cannot be mapped");
    s->map = map;
    s->guard = heft_guard_new(map, (size_t)s->written);
    if (!s->guard)
        return heft_error_plain(err, HEFT_E_NOMEM, "no memory to guard a mapping");
    heft_guard_arm(s->guard);
    *out = map;
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
        munmap(s->map, (size_t)s->written);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}

static const heft_scratch_ops ops = {
    .write = write_next,
    .lend = lend,
    .state = state,
    .close = close_scratch,
};

/* ---- the file ---- */

/* Under a name for a moment, where the file system knows no files without one. */
static int open_named(int dir)
{
    for (int tries = 0; tries < 100; tries++) {
        char name[NAME_MAX + 1];
        uint32_t r;
        heft_os_entropy(&r, sizeof r);
        snprintf(name, sizeof name, ".heft.%08x.tmp", (unsigned)(r ^ (uint32_t)getpid()));
        int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0)
            unlinkat(dir, name, 0);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* Space is found to be missing before anything is decoded. */
static heft_status reserve(int fd, uint64_t bytes, heft_error *err)
{
    int os = bytes > INT64_MAX ? EFBIG : 0;
    while (!os && fallocate(fd, 0, 0, (off_t)bytes)) {
        if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)
            os = errno;
        else if (errno != EINTR)
            break;
    }
    if (!os)
        return HEFT_OK;
    char what[64];
    snprintf(what, sizeof what, "no room for a temporary file of %llu bytes",
             (unsigned long long)bytes);
    return heft_os_error(err, os, what);
}

heft_status heft_scratch_in(heft_scratch **out, int dir, uint64_t bytes, heft_error *err)
{
    scratch *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s)
        return heft_error_plain(err, HEFT_E_NOMEM, "no memory for a temporary file");
    s->base.ops = &ops;
    s->fd = openat(dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (s->fd < 0)
        s->fd = open_named(dir);
    heft_status st = s->fd < 0 ? heft_os_error(err, errno, "a temporary file cannot be made")
                               : reserve(s->fd, bytes, err);
    if (st)
        close_scratch(&s->base);
    else
        *out = &s->base;
    return st;
}

/* /var/tmp rather than /tmp, which may be memory. */
heft_status heft_scratch_temporary(heft_scratch **out, uint64_t bytes, heft_error *err)
{
    const char *set = secure_getenv("TMPDIR"), *path = set && *set ? set : "/var/tmp";
    heft_error why;
    *out = NULL;
    int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    heft_status st = dir < 0 ? heft_os_error(&why, errno, "no room for temporary files")
                             : heft_scratch_in(out, dir, bytes, &why);
    if (dir >= 0)
        close(dir);
    if (st) {
        heft_error_plain(err, st, "%s: %s", path, why.message);
        if (err)
            err->os = why.os;
    }
    return st;
}
