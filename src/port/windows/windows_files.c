/* windows_files.c - open, read and write files, and ask for the status. */
#include "port/windows/system.h"

#include <io.h>
#include <stdarg.h>

enum { MAX_REQUEST = 1 << 30 }; /* bytes per request: ReadFile() counts in 32 bits */
static const DWORD SHARE_ALL = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

/* ---- descriptors ---- */

HANDLE windows_handle(int fd)
{
    HANDLE handle = fd < 0 ? INVALID_HANDLE_VALUE : (HANDLE)_get_osfhandle(fd);
    if (handle == INVALID_HANDLE_VALUE)
        errno = EBADF;
    return handle;
}

int windows_descriptor(HANDLE handle, int flags)
{
    enum { NO_INHERIT = 0x80, BINARY = 0x8000 };
    int fd = _open_osfhandle((intptr_t)handle, (flags & WINDOWS_READ_WRITE) | NO_INHERIT | BINARY);
    if (fd >= 0)
        return fd;
    CloseHandle(handle);
    errno = EMFILE;
    return -1;
}

int windows_close(int fd)
{
    return _close(fd);
}

static int duplicate(int fd)
{
    HANDLE copy, self = GetCurrentProcess(), handle = windows_handle(fd);
    if (handle == INVALID_HANDLE_VALUE)
        return -1;
    if (!DuplicateHandle(self, handle, self, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS))
        return windows_fail();
    return windows_descriptor(copy, WINDOWS_READ_WRITE);
}

int windows_fcntl(int fd, int command, ...)
{
    if (command == WINDOWS_DUPLICATE)
        return duplicate(fd);
    return windows_handle(fd) == INVALID_HANDLE_VALUE ? -1 : 0;
}

/* ---- opening ---- */

static DWORD access_of(int flags)
{
    if (flags & WINDOWS_PATH_ONLY)
        return FILE_READ_ATTRIBUTES | FILE_TRAVERSE | SYNCHRONIZE;
    if (flags & WINDOWS_READ_WRITE)
        return GENERIC_READ | GENERIC_WRITE;
    return flags & WINDOWS_WRITE ? GENERIC_WRITE : GENERIC_READ;
}

static DWORD disposition_of(int flags)
{
    if (flags & WINDOWS_CREATE)
        return flags & WINDOWS_EXCLUSIVE  ? CREATE_NEW
               : flags & WINDOWS_TRUNCATE ? CREATE_ALWAYS
                                          : OPEN_ALWAYS;
    return flags & WINDOWS_TRUNCATE ? TRUNCATE_EXISTING : OPEN_EXISTING;
}

/* Return the errno value that open() gives for the kind of the opened file, or 0. */
static int check_kind(HANDLE handle, int flags)
{
    FILE_ATTRIBUTE_TAG_INFO tag;
    BY_HANDLE_FILE_INFORMATION info;
    if (GetFileType(handle) != FILE_TYPE_DISK || !GetFileInformationByHandle(handle, &info))
        return flags & WINDOWS_FOLDER ? ENOTDIR : 0;
    bool is_folder = info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
    if (flags & WINDOWS_NO_FOLLOW && info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT &&
        GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &tag, sizeof tag) &&
        IsReparseTagNameSurrogate(tag.ReparseTag))
        return ELOOP;
    if (flags & WINDOWS_FOLDER && !is_folder)
        return ENOTDIR;
    return is_folder && flags & (WINDOWS_WRITE | WINDOWS_READ_WRITE) ? EISDIR : 0;
}

static int open_wide(const wchar_t *path, int flags)
{
    DWORD attributes = FILE_ATTRIBUTE_NORMAL | FILE_FLAG_BACKUP_SEMANTICS |
                       (flags & WINDOWS_NO_FOLLOW ? FILE_FLAG_OPEN_REPARSE_POINT : 0);
    HANDLE handle = CreateFileW(path, access_of(flags), SHARE_ALL, NULL, disposition_of(flags),
                                attributes, NULL);
    if (handle == INVALID_HANDLE_VALUE)
        return windows_fail();
    int os = check_kind(handle, flags);
    if (!os)
        return windows_descriptor(handle, flags);
    CloseHandle(handle);
    errno = os;
    return -1;
}

/* Return the descriptor that "/dev/fd/N" names, or -1. */
static int named_descriptor(const char *path)
{
    static const char prefix[] = "/dev/fd/";
    return strncmp(path, prefix, sizeof prefix - 1) ? -1 : atoi(path + sizeof prefix - 1);
}

int windows_openat(int dir, const char *path, int flags, ...)
{
    int known = named_descriptor(path);
    if (known >= 0)
        return duplicate(known);
    if (flags & WINDOWS_UNNAMED) {
        errno = EINVAL;
        return -1;
    }
    wchar_t *wide = windows_path(dir, path);
    int fd = wide ? open_wide(wide, flags) : -1, os = errno;
    free(wide);
    errno = os;
    return fd;
}

int windows_open(const char *path, int flags, ...)
{
    return windows_openat(WINDOWS_HERE, path, flags);
}

FILE *windows_fopen(const char *path, const char *mode)
{
    wchar_t *wide = windows_path(WINDOWS_HERE, path), *wide_mode = windows_utf16(mode);
    FILE *f = wide && wide_mode ? _wfopen(wide, wide_mode) : NULL;
    free(wide);
    free(wide_mode);
    return f;
}

int windows_mkstemp(char *path)
{
    size_t len = strlen(path);
    for (uint32_t i = 0; len >= 6 && i < 100; i++) {
        uint32_t number = (GetTickCount() ^ GetCurrentProcessId() << 12) + i;
        snprintf(path + len - 6, 7, "%06x", (unsigned)(number & 0xFFFFFF));
        int fd = windows_open(path, WINDOWS_READ_WRITE | WINDOWS_CREATE | WINDOWS_EXCLUSIVE);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    errno = EEXIST;
    return -1;
}

/* ---- bytes ---- */

static DWORD limit_request(size_t len)
{
    return len < MAX_REQUEST ? (DWORD)len : MAX_REQUEST;
}

static OVERLAPPED position(off_t at)
{
    uint64_t offset = (uint64_t)at;
    return (OVERLAPPED){ .Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32) };
}

/* Read at a position, or where the last read ended.  A pipe that its writer has closed ends, as a
 * file does. */
static ssize_t read_some(int fd, void *buf, size_t len, OVERLAPPED *where)
{
    DWORD got = 0;
    HANDLE handle = windows_handle(fd);
    if (handle == INVALID_HANDLE_VALUE)
        return -1;
    if (ReadFile(handle, buf, limit_request(len), &got, where))
        return (ssize_t)got;
    DWORD error = GetLastError();
    return error == ERROR_HANDLE_EOF || error == ERROR_BROKEN_PIPE ? 0 : windows_fail();
}

ssize_t windows_read(int fd, void *buf, size_t len)
{
    return read_some(fd, buf, len, NULL);
}

ssize_t windows_pread(int fd, void *buf, size_t len, off_t at)
{
    OVERLAPPED where = position(at);
    return read_some(fd, buf, len, &where);
}

static ssize_t write_some(int fd, const void *data, size_t len, OVERLAPPED *where)
{
    DWORD done = 0;
    HANDLE handle = windows_handle(fd);
    if (handle == INVALID_HANDLE_VALUE)
        return -1;
    return WriteFile(handle, data, limit_request(len), &done, where) ? (ssize_t)done
                                                                     : windows_fail();
}

ssize_t windows_write(int fd, const void *data, size_t len)
{
    return write_some(fd, data, len, NULL);
}

ssize_t windows_pwrite(int fd, const void *data, size_t len, off_t at)
{
    OVERLAPPED where = position(at);
    return write_some(fd, data, len, &where);
}

int windows_ftruncate(int fd, off_t size)
{
    FILE_END_OF_FILE_INFO end = { .EndOfFile.QuadPart = size };
    HANDLE handle = windows_handle(fd);
    if (handle == INVALID_HANDLE_VALUE)
        return -1;
    return SetFileInformationByHandle(handle, FileEndOfFileInfo, &end, sizeof end) ? 0
                                                                                   : windows_fail();
}

/* Folders need no flush: NTFS logs changes of names. */
int windows_fsync(int fd)
{
    BY_HANDLE_FILE_INFORMATION info;
    HANDLE handle = windows_handle(fd);
    if (handle == INVALID_HANDLE_VALUE)
        return -1;
    if (GetFileInformationByHandle(handle, &info) &&
        info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY)
        return 0;
    return FlushFileBuffers(handle) ? 0 : windows_fail();
}

/* Lock one byte far beyond the end: locked bytes can be neither read nor written by others. */
int windows_lock(int fd)
{
    OVERLAPPED where = position(INT64_MAX - 1);
    HANDLE handle = windows_handle(fd);
    if (handle == INVALID_HANDLE_VALUE)
        return -1;
    return LockFileEx(handle, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &where)
               ? 0
               : windows_fail();
}

/* ---- status ---- */

static struct timespec time_of(LARGE_INTEGER t)
{
    static const int64_t TICKS = 10000000, FROM_1601 = 11644473600;
    return (struct timespec){ .tv_sec = t.QuadPart / TICKS - FROM_1601,
                              .tv_nsec = (long)(t.QuadPart % TICKS * 100) };
}

static unsigned mode_of(HANDLE handle, const BY_HANDLE_FILE_INFORMATION *info)
{
    FILE_ATTRIBUTE_TAG_INFO tag;
    unsigned rights = info->dwFileAttributes & FILE_ATTRIBUTE_READONLY ? 0444 : 0644;
    if (info->dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT &&
        GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &tag, sizeof tag) &&
        IsReparseTagNameSurrogate(tag.ReparseTag))
        return WINDOWS_MODE_LINK | 0777;
    return info->dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? WINDOWS_MODE_FOLDER | 0755
                                                             : WINDOWS_MODE_FILE | rights;
}

int windows_describe(HANDLE handle, struct windows_stat *out)
{
    BY_HANDLE_FILE_INFORMATION info;
    FILE_BASIC_INFO times;
    DWORD type = GetFileType(handle);
    *out = (struct windows_stat){ .st_mode = type == FILE_TYPE_PIPE ? WINDOWS_MODE_PIPE
                                                                    : WINDOWS_MODE_DEVICE,
                                  .st_nlink = 1 };
    if (type != FILE_TYPE_DISK)
        return 0;
    if (!GetFileInformationByHandle(handle, &info) ||
        !GetFileInformationByHandleEx(handle, FileBasicInfo, &times, sizeof times))
        return windows_fail();
    out->st_dev = info.dwVolumeSerialNumber;
    out->st_ino = (uint64_t)info.nFileIndexHigh << 32 | info.nFileIndexLow;
    out->st_mode = mode_of(handle, &info);
    out->st_nlink = info.nNumberOfLinks;
    out->st_size = (int64_t)((uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow);
    out->st_mtim = time_of(times.LastWriteTime);
    out->st_ctim = time_of(times.ChangeTime);
    return 0;
}

int windows_fstat(int fd, struct windows_stat *out)
{
    HANDLE handle = windows_handle(fd);
    return handle == INVALID_HANDLE_VALUE ? -1 : windows_describe(handle, out);
}

int windows_fstatat(int dir, const char *path, struct windows_stat *out, int flags)
{
    int known = named_descriptor(path);
    if (known >= 0)
        return windows_fstat(known, out);
    wchar_t *wide = windows_path(dir, path);
    if (!wide)
        return -1;
    DWORD link = flags & WINDOWS_STAT_LINK ? FILE_FLAG_OPEN_REPARSE_POINT : 0;
    HANDLE handle = CreateFileW(wide, FILE_READ_ATTRIBUTES, SHARE_ALL, NULL, OPEN_EXISTING,
                                FILE_FLAG_BACKUP_SEMANTICS | link, NULL);
    int failed = handle == INVALID_HANDLE_VALUE ? windows_fail() : windows_describe(handle, out);
    int os = errno;
    if (handle != INVALID_HANDLE_VALUE)
        CloseHandle(handle);
    free(wide);
    errno = os;
    return failed;
}

int windows_stat(const char *path, struct windows_stat *out)
{
    return windows_fstatat(WINDOWS_HERE, path, out, 0);
}

int windows_lstat(const char *path, struct windows_stat *out)
{
    return windows_fstatat(WINDOWS_HERE, path, out, WINDOWS_STAT_LINK);
}
