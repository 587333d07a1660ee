/* windows_disk.c - the table of system calls on Windows; see disk.h. */
#include "port/windows/system.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "port/save/sink_file.h"
#include "port/system/disk.h"

/* Set the allocated size and leave the size of the file unchanged. */
static int reserve_blocks(int fd, off_t size)
{
    FILE_ALLOCATION_INFO info = { .AllocationSize.QuadPart = size };
    HANDLE handle = windows_handle(fd);
    if (handle == INVALID_HANDLE_VALUE)
        return -1;
    return SetFileInformationByHandle(handle, FileAllocationInfo, &info, sizeof info)
               ? 0
               : windows_fail();
}

static int start_sync(int fd, off_t at, off_t len)
{
    (void)fd, (void)at, (void)len;
    return 0;
}

/* Writes report errors at once. */
static int flush_file(int fd)
{
    return windows_handle(fd) == INVALID_HANDLE_VALUE ? -1 : 0;
}

static int set_mode(int fd, mode_t mode)
{
    (void)mode; /* a new file inherits the rights of its folder */
    return windows_handle(fd) == INVALID_HANDLE_VALUE ? -1 : 0;
}

static int create_file(int dir, const char *name, int flags, mode_t mode)
{
    (void)mode;
    return windows_openat(dir, name, flags);
}

static int name_file(int fd, int dir, const char *name)
{
    (void)fd, (void)dir, (void)name;
    errno = EINVAL; /* no file is without a name */
    return -1;
}

static int link_file(int dir, const char *from, const char *to)
{
    return windows_linkat(dir, from, dir, to, 0);
}

static int rename_file(int dir, const char *from, const char *to)
{
    return windows_renameat(dir, from, dir, to);
}

static int remove_file(int dir, const char *name)
{
    return windows_unlinkat(dir, name, 0);
}

static ssize_t copy_bytes(int from, off_t at, int to, off_t to_at, size_t len)
{
    (void)from, (void)at, (void)to, (void)to_at, (void)len;
    errno = ENOSYS;
    return -1;
}

static int reflink_bytes(int from, off_t at, int to, off_t to_at, size_t len)
{
    (void)from, (void)at, (void)to, (void)to_at, (void)len;
    errno = ENOSYS;
    return -1;
}

const heft_disk heft_system_disk = {
    .read = windows_pread,
    .write = windows_pwrite,
    .append = windows_write,
    .truncate = windows_ftruncate,
    .reserve = reserve_blocks,
    .start_sync = start_sync,
    .sync = windows_fsync,
    .flush = flush_file,
    .close = windows_close,
    .set_mode = set_mode,
    .lock = windows_lock,
    .create = create_file,
    .name = name_file,
    .link = link_file,
    .rename = rename_file,
    .rename_new = windows_rename_new,
    .remove = remove_file,
    .copy = copy_bytes,
    .reflink = reflink_bytes,
};

heft_status heft_copy_file_attributes(int to, const heft_target *t, heft_error *err)
{
    (void)to, (void)t, (void)err;
    return HEFT_OK;
}

int heft_copy_access(const heft_disk *disk, int fd, const struct stat *old)
{
    (void)disk, (void)fd, (void)old;
    return 0;
}
