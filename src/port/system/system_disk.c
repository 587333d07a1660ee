/* system_disk.c - the table of system calls on Linux. */
#include "port/system/disk.h"
#include "port/system/renameat2.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Return true if the blocks that a file of `size` bytes lacks are more than the file system has. */
static bool is_too_large(int fd, off_t size)
{
    struct statvfs system;
    struct stat file;
    if (fstatvfs(fd, &system) || !system.f_blocks || !system.f_frsize ||
        (uint64_t)size / system.f_frsize <= system.f_bavail || fstat(fd, &file))
        return false;
    uint64_t present = (uint64_t)file.st_blocks * 512;
    return (uint64_t)size > present &&
           ((uint64_t)size - present) / system.f_frsize > system.f_bavail;
}

/* Ask for the free space first: a reservation that fails takes all free space for a moment, and
 * other programs fail, too. */
static int reserve_blocks(int fd, off_t size)
{
    if (!is_too_large(fd, size))
        return fallocate(fd, 0, 0, size);
    errno = ENOSPC;
    return -1;
}

static int start_sync(int fd, off_t at, off_t len)
{
    return sync_file_range(fd, at, len, SYNC_FILE_RANGE_WRITE);
}

/* Network file systems and quotas report failed writes when a descriptor is closed; a duplicate
 * descriptor works as well as the original. */
static int flush_file(int fd)
{
    int duplicate = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return duplicate < 0 ? -1 : close(duplicate);
}

static int lock_file(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB);
}

static int create_file(int dir, const char *name, int flags, mode_t mode)
{
    return openat(dir, name, flags, mode);
}

static int name_file(int fd, int dir, const char *name)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW);
}

static int link_file(int dir, const char *from, const char *to)
{
    return linkat(dir, from, dir, to, 0);
}

static int rename_file(int dir, const char *from, const char *to)
{
    return renameat(dir, from, dir, to);
}

static int rename_new(int dir, const char *from, const char *to)
{
    return renameat2(dir, from, dir, to, RENAME_NOREPLACE);
}

static int remove_file(int dir, const char *name)
{
    return unlinkat(dir, name, 0);
}

static ssize_t copy_bytes(int from, off_t at, int to, off_t to_at, size_t len)
{
    return copy_file_range(from, &at, to, &to_at, len, 0);
}

static int reflink_bytes(int from, off_t at, int to, off_t to_at, size_t len)
{
    struct file_clone_range r = { from, (uint64_t)at, len, (uint64_t)to_at };
    return ioctl(to, FICLONERANGE, &r);
}

const heft_disk heft_system_disk = {
    .read = pread,
    .write = pwrite,
    .append = write,
    .truncate = ftruncate,
    .reserve = reserve_blocks,
    .start_sync = start_sync,
    .sync = fsync,
    .flush = flush_file,
    .close = close,
    .set_mode = fchmod,
    .lock = lock_file,
    .create = create_file,
    .name = name_file,
    .link = link_file,
    .rename = rename_file,
    .rename_new = rename_new,
    .remove = remove_file,
    .copy = copy_bytes,
    .reflink = reflink_bytes,
};
