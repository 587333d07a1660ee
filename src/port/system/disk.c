/* disk.c - loops that repeat interrupted calls and short reads and writes. */
#include "port/system/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

/* ---- interrupted calls ---- */

static bool is_interrupted(ssize_t result)
{
    return result < 0 && errno == EINTR;
}

int heft_open_at(int dir, const char *path, int flags)
{
    int fd;
    do
        fd = openat(dir, path, flags);
    while (is_interrupted(fd));
    return fd;
}

int heft_open_folder_of(const char *path, int flags)
{
    char folder[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) + 1 : 0; /* "/name" lies in "/" */
    if (len >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(folder, path, len);
    return heft_open_at(AT_FDCWD, folder, flags | O_DIRECTORY | O_CLOEXEC);
}

int heft_disk_create(const heft_disk *d, int dir, const char *name, int flags, mode_t mode)
{
    int fd;
    do
        fd = d->create(dir, name, flags, mode);
    while (is_interrupted(fd));
    return fd;
}

int heft_disk_truncate(const heft_disk *d, int fd, off_t size)
{
    int failed;
    do
        failed = d->truncate(fd, size);
    while (is_interrupted(failed));
    return failed;
}

static int retry_interrupted(int (*call)(int fd), int fd)
{
    int failed;
    do
        failed = call(fd);
    while (is_interrupted(failed));
    return failed;
}

int heft_disk_sync(const heft_disk *d, int fd)
{
    return retry_interrupted(d->sync, fd);
}

int heft_disk_flush(const heft_disk *d, int fd)
{
    return retry_interrupted(d->flush, fd);
}

int heft_disk_lock(const heft_disk *d, int fd)
{
    return retry_interrupted(d->lock, fd);
}

ssize_t heft_disk_copy(const heft_disk *d, int from, off_t at, int to, off_t to_at, size_t len)
{
    ssize_t n;
    do
        n = d->copy(from, at, to, to_at, len);
    while (is_interrupted(n));
    return n;
}

int heft_disk_reflink(const heft_disk *d, int from, off_t at, int to, off_t to_at, size_t len)
{
    int failed;
    do
        failed = d->reflink(from, at, to, to_at, len);
    while (is_interrupted(failed));
    return failed;
}

int heft_disk_rename_new(const heft_disk *d, int dir, const char *from, const char *to)
{
    struct stat info;
    if (!d->rename_new(dir, from, to))
        return 0;
    if (errno != EINVAL)
        return -1;
    if (!fstatat(dir, to, &info, AT_SYMLINK_NOFOLLOW))
        errno = EEXIST;
    else if (errno == ENOENT)
        return d->rename(dir, from, to);
    return -1;
}

int heft_disk_reserve(const heft_disk *d, int fd, uint64_t size)
{
    if (size > INT64_MAX)
        return EFBIG;
    int failed = 0;
    do
        failed = size ? d->reserve(fd, (off_t)size) : 0;
    while (is_interrupted(failed));
    bool is_full = failed && (errno == ENOSPC || errno == EFBIG || errno == EDQUOT);
    return is_full ? errno : 0;
}

int heft_disk_sync_dir(const heft_disk *d, int dir)
{
    int failed = heft_disk_sync(d, dir);
    return failed && (errno == EINVAL || errno == EBADF) ? 0 : failed;
}

heft_status heft_disk_sync_dir_after_save(const heft_disk *d, int dir, heft_error *err)
{
    if (!heft_disk_sync_dir(d, dir))
        return HEFT_OK;
    return heft_os_error(err, errno,
                         "saved, but a power failure may undo it: its directory cannot be synced");
}

int heft_disk_no_sync(int fd)
{
    (void)fd;
    return 0;
}

/* ---- short reads and writes ---- */

heft_status heft_disk_read_all(const heft_disk *d, int fd, uint64_t at, void *buf, size_t len,
                               heft_error *err)
{
    uint8_t *p = buf;
    while (len) {
        ssize_t n = d->read(fd, p, len, (off_t)at);
        if (is_interrupted(n))
            continue;
        if (n <= 0)
            return heft_os_error(err, n ? errno : EIO, "reading failed");
        p += n;
        at += (size_t)n;
        len -= (size_t)n;
    }
    return HEFT_OK;
}

heft_status heft_disk_write_all(const heft_disk *d, int fd, uint64_t at, const void *data,
                                size_t len, heft_error *err)
{
    const uint8_t *p = data;
    while (len) {
        ssize_t n = d->write(fd, p, len, (off_t)at);
        if (is_interrupted(n))
            continue;
        if (n <= 0)
            return heft_os_error(err, n ? errno : ENOSPC, "writing failed");
        p += n;
        at += (size_t)n;
        len -= (size_t)n;
    }
    return HEFT_OK;
}
