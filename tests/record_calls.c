/* record_calls.c - system calls that change files, preloaded into the command, so that each call is
 * recorded or the command is killed at a chosen call.
 *
 * HEFT_RECORD names the file that receives the records. HEFT_KILL_AT is the number of the call to
 * be killed with SIGKILL. HEFT_KILL is "before" or "after" for a kill before or after the call, or
 * "half" for a kill after half of the bytes are written (for a call that writes no bytes: before
 * the call). Calls inside the C library are neither recorded nor killed. With HEFT_SIMPLE the file
 * system has no unnamed files, no RENAME_NOREPLACE and no copy_file_range().
 *
 * A record is a struct record, the name, the new name of a rename, and the bytes of a write. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_SIZE = 1 << 16 };

typedef struct record {
    char call[8];
    uint64_t file, dir; /* identities; a folder is the file of a sync */
    uint64_t at, length;
    uint32_t name_length, new_name_length;
} record;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long calls, kill_at;
static char kill_when;
static bool is_simple;
static int records = -1;

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void prepare(void)
{
    const char *path = getenv("HEFT_RECORD"), *at = getenv("HEFT_KILL_AT");
    const char *when = getenv("HEFT_KILL");
    typedef int open_fn(int, const char *, int, ...);
    open_fn *open_at = (open_fn *)next("openat64");
    calls = 0; /* calls of earlier constructors belong to no command */
    kill_at = at ? strtoul(at, NULL, 10) : 0;
    kill_when = when ? *when : 'b';
    is_simple = getenv("HEFT_SIMPLE") != NULL;
    if (path)
        records = open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (path && records < 0)
        _exit(120); /* the test would read no records */
}

/* ---- identities ---- */

static uint64_t identity(const struct stat *info)
{
    return (uint64_t)info->st_dev << 48 ^ info->st_ino;
}

/* Return 0 if there is no such file; keep the errno of the call that precedes. */
static uint64_t identity_at(int dir, const char *name)
{
    struct stat info;
    int os = errno,
        failed = fstatat(dir, name, &info, name[0] ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH);
    errno = os;
    return failed ? 0 : identity(&info);
}

static uint64_t identity_of(int fd)
{
    return fd < 0 ? 0 : identity_at(fd, "");
}

static bool is_regular(int fd)
{
    struct stat info;
    return !fstat(fd, &info) && S_ISREG(info.st_mode);
}

/* ---- calls ---- */

/* Begin a call; other threads wait until end() or skip(). Return true if half of the bytes are to
 * be written. */
static bool begin(void)
{
    pthread_mutex_lock(&lock);
    bool is_killed = ++calls == kill_at;
    if (is_killed && kill_when == 'b')
        raise(SIGKILL);
    return is_killed && kill_when == 'h';
}

static void write_record(const void *bytes, size_t len)
{
    ssize_t (*write_bytes)(int, const void *, size_t) = next("write");
    if (len && write_bytes(records, bytes, len) != (ssize_t)len)
        _exit(120);
}

/* Read the bytes back that a call has written into the file, and record the bytes. */
static void record_bytes(int fd, uint64_t at, uint64_t length)
{
    static char buf[BUFFER_SIZE];
    ssize_t (*read_at)(int, void *, size_t, off_t) = next("pread64");
    for (size_t n; length; at += n, length -= n) {
        n = length < BUFFER_SIZE ? (size_t)length : BUFFER_SIZE;
        if (read_at(fd, buf, n, (off_t)at) != (ssize_t)n)
            _exit(120);
        write_record(buf, n);
    }
}

/* End a call that has succeeded if `result` is not negative; return `result`. */
static ssize_t end(const char *call, ssize_t result, record r, const char *name,
                   const char *new_name, int fd)
{
    int os = errno;
    bool is_killed = calls == kill_at;
    r.name_length = name ? (uint32_t)strlen(name) : 0;
    r.new_name_length = new_name ? (uint32_t)strlen(new_name) : 0;
    memcpy(r.call, call, strlen(call)); /* at most seven letters */
    if (records >= 0 && result >= 0) {
        write_record(&r, sizeof r);
        write_record(name, r.name_length);
        write_record(new_name, r.new_name_length);
        if (!strcmp(call, "write"))
            record_bytes(fd, r.at, r.length);
    }
    if (is_killed)
        raise(SIGKILL); /* after the call, or after half of the call */
    pthread_mutex_unlock(&lock);
    errno = os;
    return result;
}

static size_t bytes_to_write(bool is_half, size_t len)
{
    if (is_half && len < 2)
        raise(SIGKILL);
    return is_half ? len / 2 : len;
}

static int refuse(int error)
{
    errno = error;
    return -1;
}

static void kill_instead_of_half(bool is_half)
{
    if (is_half)
        raise(SIGKILL);
}

int openat(int dir, const char *name, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = va_arg(ap, mode_t);
    va_end(ap);
    int (*f)(int, const char *, int, ...) = next("openat64");
    bool is_unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    if (is_unnamed && is_simple)
        return refuse(EOPNOTSUPP);
    if (!(flags & O_CREAT) && !is_unnamed)
        return f(dir, name, flags, mode);
    kill_instead_of_half(begin());
    int fd = f(dir, name, flags, mode);
    record r = { .file = identity_of(fd), .dir = identity_at(dir, ".") };
    return (int)end(is_unnamed ? "unnamed" : "create", fd, r, is_unnamed ? NULL : name, NULL, -1);
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
    ssize_t (*f)(int, const void *, size_t, off_t) = next("pwrite64");
    ssize_t n = f(fd, data, bytes_to_write(begin(), len), at);
    record r = { .file = identity_of(fd), .at = (uint64_t)at, .length = (uint64_t)n };
    return end("write", n, r, NULL, NULL, fd);
}

/* Record sequential writes to files; most writes of this kind go to pipes and terminals. */
ssize_t write(int fd, const void *data, size_t len)
{
    ssize_t (*f)(int, const void *, size_t) = next("write");
    if (!is_regular(fd))
        return f(fd, data, len);
    ssize_t n = f(fd, data, bytes_to_write(begin(), len));
    uint64_t end_at = (uint64_t)lseek(fd, 0, SEEK_CUR);
    record r = { .file = identity_of(fd), .at = end_at - (uint64_t)n, .length = (uint64_t)n };
    return end("write", n, r, NULL, NULL, fd);
}

ssize_t copy_file_range(int from, off_t *at, int to, off_t *to_at, size_t len, unsigned flags)
{
    ssize_t (*f)(int, off_t *, int, off_t *, size_t, unsigned) = next("copy_file_range");
    uint64_t start = (uint64_t)*to_at;
    if (is_simple)
        return refuse(EXDEV);
    ssize_t n = f(from, at, to, to_at, bytes_to_write(begin(), len), flags);
    record r = { .file = identity_of(to), .at = start, .length = (uint64_t)n };
    return end("write", n, r, NULL, NULL, to);
}

int ioctl(int fd, unsigned long what, ...)
{
    va_list ap;
    va_start(ap, what);
    void *value = va_arg(ap, void *);
    va_end(ap);
    int (*f)(int, unsigned long, ...) = next("ioctl");
    if (what != FICLONERANGE)
        return f(fd, what, value);
    kill_instead_of_half(begin());
    const struct file_clone_range *range = value;
    int failed = f(fd, what, value);
    record r = { .file = identity_of(fd), .at = range->dest_offset, .length = range->src_length };
    return (int)end("write", failed, r, NULL, NULL, fd);
}

int ftruncate(int fd, off_t size)
{
    int (*f)(int, off_t) = next("ftruncate64");
    kill_instead_of_half(begin());
    record r = { .file = identity_of(fd), .length = (uint64_t)size };
    return (int)end("size", f(fd, size), r, NULL, NULL, -1);
}

int fallocate(int fd, int mode, off_t at, off_t len)
{
    int (*f)(int, int, off_t, off_t) = next("fallocate64");
    kill_instead_of_half(begin());
    record r = { .file = identity_of(fd), .length = (uint64_t)(at + len) };
    return (int)end("reserve", f(fd, mode, at, len), r, NULL, NULL, -1);
}

int fsync(int fd)
{
    int (*f)(int) = next("fsync");
    kill_instead_of_half(begin());
    return (int)end("sync", f(fd), (record){ .file = identity_of(fd) }, NULL, NULL, -1);
}

int linkat(int from, const char *old, int to, const char *name, int flags)
{
    int (*f)(int, const char *, int, const char *, int) = next("linkat");
    kill_instead_of_half(begin());
    int failed = f(from, old, to, name, flags);
    record r = { .file = identity_at(to, name), .dir = identity_at(to, ".") };
    return (int)end("link", failed, r, name, NULL, -1);
}

static int record_rename(int failed, int from, const char *old, int to, const char *name)
{
    record r = { .file = identity_at(to, name), .dir = identity_at(from, ".") };
    if (identity_at(to, ".") != r.dir)
        _exit(120); /* Heft renames within a folder */
    return (int)end("rename", failed, r, old, name, -1);
}

int renameat(int from, const char *old, int to, const char *name)
{
    int (*f)(int, const char *, int, const char *) = next("renameat");
    kill_instead_of_half(begin());
    return record_rename(f(from, old, to, name), from, old, to, name);
}

int renameat2(int from, const char *old, int to, const char *name, unsigned flags)
{
    int (*f)(int, const char *, int, const char *, unsigned) = next("renameat2");
    if (is_simple && flags)
        return refuse(EINVAL);
    kill_instead_of_half(begin());
    return record_rename(f(from, old, to, name, flags), from, old, to, name);
}

int unlinkat(int dir, const char *name, int flags)
{
    int (*f)(int, const char *, int) = next("unlinkat");
    kill_instead_of_half(begin());
    record r = { .file = identity_at(dir, name), .dir = identity_at(dir, ".") };
    return (int)end("unlink", f(dir, name, flags), r, name, NULL, -1);
}

int mkdir(const char *name, mode_t mode)
{
    int (*f)(const char *, mode_t) = next("mkdir");
    kill_instead_of_half(begin());
    int failed = f(name, mode);
    record r = { .file = identity_at(AT_FDCWD, name), .dir = identity_at(AT_FDCWD, ".") };
    return (int)end("mkdir", failed, r, name, NULL, -1);
}

int rmdir(const char *name)
{
    int (*f)(const char *) = next("rmdir");
    kill_instead_of_half(begin());
    record r = { .file = identity_at(AT_FDCWD, name), .dir = identity_at(AT_FDCWD, ".") };
    return (int)end("unlink", f(name), r, name, NULL, -1);
}
