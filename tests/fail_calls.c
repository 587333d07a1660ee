/* fail_calls.c - system calls on files, preloaded into the command, that fail at a chosen call.
 * HEFT_FAIL_AT is the number of the call; with HEFT_FAIL_ON all later calls fail, too.
 * HEFT_FAIL_ERRNO is the error; 0: the call succeeds after descriptor 0 was closed, so that a file
 * that the call opens gets 0. With HEFT_FAIL_HALF a call that reads or writes does not fail, but
 * transfers half of the bytes. When the call is reached, the name of the function is written to the
 * file descriptor HEFT_FAIL_TELL. With HEFT_FAIL_STOP the process stops before the call (SIGSTOP),
 * which then succeeds. Calls inside the C library never fail. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

static atomic_ulong calls;
static unsigned long fail_at;
static int reached_fd = -1, keeps_failing, error;
static int halves;                   /* the chosen call transfers half of the bytes */
static int stops;                    /* the process stops before the chosen call */
static _Thread_local bool is_halved; /* the current call is the chosen call */

__attribute__((constructor)) static void prepare(void)
{
    const char *at = getenv("HEFT_FAIL_AT"), *fd = getenv("HEFT_FAIL_TELL");
    const char *number = getenv("HEFT_FAIL_ERRNO");
    fail_at = at ? strtoul(at, NULL, 10) : 0;
    reached_fd = fd ? atoi(fd) : -1;
    error = number ? atoi(number) : EIO;
    keeps_failing = getenv("HEFT_FAIL_ON") != NULL;
    halves = getenv("HEFT_FAIL_HALF") != NULL;
    stops = getenv("HEFT_FAIL_STOP") != NULL;
}

/* Return the C library's function, or NULL with errno set if the call is to fail. */
static void *next(const char *name)
{
    typedef ssize_t write_fn(int, const void *, size_t);
    unsigned long call = fail_at ? atomic_fetch_add(&calls, 1) + 1 : 0;
    if (!fail_at || call < fail_at || (call > fail_at && !keeps_failing))
        return dlsym(RTLD_NEXT, name);
    write_fn *tell = (write_fn *)dlsym(RTLD_NEXT, "write");
    if (call == fail_at && tell(reached_fd, name, strlen(name)) < 0)
        _exit(120); /* the test would not notice that the call was reached */
    is_halved = halves;
    if (stops)
        raise(SIGSTOP);
    else if (!error) {
        int (*close_it)(int) = dlsym(RTLD_NEXT, "close");
        close_it(0);
    }
    if (halves || stops || !error)
        return dlsym(RTLD_NEXT, name);
    errno = error;
    return NULL;
}

/* Return how many of len bytes the current call transfers. */
static size_t bytes(size_t len)
{
    size_t n = is_halved ? (len + 1) / 2 : len;
    is_halved = false;
    return n;
}

int openat(int dir, const char *name, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = va_arg(ap, mode_t);
    va_end(ap);
    int (*f)(int, const char *, int, ...) = next("openat");
    return f ? f(dir, name, flags, mode) : -1;
}

ssize_t pread(int fd, void *to, size_t len, off_t at)
{
    ssize_t (*f)(int, void *, size_t, off_t) = next("pread");
    return f ? f(fd, to, bytes(len), at) : -1;
}

ssize_t preadv(int fd, const struct iovec *to, int count, off_t at)
{
    ssize_t (*f)(int, const struct iovec *, int, off_t) = next("preadv");
    struct iovec first = to[0];
    first.iov_len = bytes(first.iov_len);
    bool is_whole = first.iov_len == to[0].iov_len;
    return !f ? -1 : is_whole ? f(fd, to, count, at) : f(fd, &first, 1, at);
}

ssize_t read(int fd, void *to, size_t len)
{
    ssize_t (*f)(int, void *, size_t) = next("read");
    return f ? f(fd, to, bytes(len)) : -1;
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
    ssize_t (*f)(int, const void *, size_t, off_t) = next("pwrite");
    return f ? f(fd, data, bytes(len), at) : -1;
}

ssize_t write(int fd, const void *data, size_t len)
{
    ssize_t (*f)(int, const void *, size_t) = next("write");
    return f ? f(fd, data, bytes(len)) : -1;
}

ssize_t copy_file_range(int from, off_t *at, int to, off_t *to_at, size_t len, unsigned flags)
{
    ssize_t (*f)(int, off_t *, int, off_t *, size_t, unsigned) = next("copy_file_range");
    return f ? f(from, at, to, to_at, bytes(len), flags) : -1;
}

int fsync(int fd)
{
    int (*f)(int) = next("fsync");
    return f ? f(fd) : -1;
}

int fstatvfs(int fd, struct statvfs *out)
{
    int (*f)(int, struct statvfs *) = next("fstatvfs");
    return f ? f(fd, out) : -1;
}

int ftruncate(int fd, off_t size)
{
    int (*f)(int, off_t) = next("ftruncate");
    return f ? f(fd, size) : -1;
}

int fallocate(int fd, int mode, off_t at, off_t len)
{
    int (*f)(int, int, off_t, off_t) = next("fallocate");
    return f ? f(fd, mode, at, len) : -1;
}

int sync_file_range(int fd, off_t at, off_t len, unsigned flags)
{
    int (*f)(int, off_t, off_t, unsigned) = next("sync_file_range");
    return f ? f(fd, at, len, flags) : -1;
}

int fstat(int fd, struct stat *to)
{
    int (*f)(int, struct stat *) = next("fstat");
    return f ? f(fd, to) : -1;
}

int fstatat(int dir, const char *name, struct stat *to, int flags)
{
    int (*f)(int, const char *, struct stat *, int) = next("fstatat");
    return f ? f(dir, name, to, flags) : -1;
}

int stat(const char *name, struct stat *to)
{
    int (*f)(const char *, struct stat *) = next("stat");
    return f ? f(name, to) : -1;
}

int lstat(const char *name, struct stat *to)
{
    int (*f)(const char *, struct stat *) = next("lstat");
    return f ? f(name, to) : -1;
}

ssize_t readlinkat(int dir, const char *name, char *to, size_t len)
{
    ssize_t (*f)(int, const char *, char *, size_t) = next("readlinkat");
    return f ? f(dir, name, to, len) : -1;
}

char *realpath(const char *name, char *to)
{
    char *(*f)(const char *, char *) = next("realpath");
    return f ? f(name, to) : NULL;
}

DIR *fdopendir(int fd)
{
    DIR *(*f)(int) = next("fdopendir");
    return f ? f(fd) : NULL;
}

struct dirent *readdir(DIR *folder)
{
    struct dirent *(*f)(DIR *) = next("readdir");
    return f ? f(folder) : NULL;
}

/* Only reflinks fail. */
int ioctl(int fd, unsigned long what, ...)
{
    va_list ap;
    va_start(ap, what);
    void *value = va_arg(ap, void *);
    va_end(ap);
    int (*f)(int, unsigned long, void *) = what == FICLONERANGE ? next("ioctl")
                                                                : dlsym(RTLD_NEXT, "ioctl");
    return f ? f(fd, what, value) : -1;
}

int flock(int fd, int how)
{
    int (*f)(int, int) = next("flock");
    return f ? f(fd, how) : -1;
}

int fchmod(int fd, mode_t mode)
{
    int (*f)(int, mode_t) = next("fchmod");
    return f ? f(fd, mode) : -1;
}

int linkat(int from, const char *old, int to, const char *name, int flags)
{
    int (*f)(int, const char *, int, const char *, int) = next("linkat");
    return f ? f(from, old, to, name, flags) : -1;
}

int renameat(int from, const char *old, int to, const char *name)
{
    int (*f)(int, const char *, int, const char *) = next("renameat");
    return f ? f(from, old, to, name) : -1;
}

int renameat2(int from, const char *old, int to, const char *name, unsigned flags)
{
    int (*f)(int, const char *, int, const char *, unsigned) = next("renameat2");
    return f ? f(from, old, to, name, flags) : -1;
}

int unlinkat(int dir, const char *name, int flags)
{
    int (*f)(int, const char *, int) = next("unlinkat");
    return f ? f(dir, name, flags) : -1;
}

int fsetxattr(int fd, const char *name, const void *value, size_t len, int flags)
{
    int (*f)(int, const char *, const void *, size_t, int) = next("fsetxattr");
    return f ? f(fd, name, value, len, flags) : -1;
}

ssize_t getrandom(void *to, size_t len, unsigned flags)
{
    ssize_t (*f)(void *, size_t, unsigned) = next("getrandom");
    return f ? f(to, len, flags) : -1;
}

int mkdir(const char *name, mode_t mode)
{
    int (*f)(const char *, mode_t) = next("mkdir");
    return f ? f(name, mode) : -1;
}

/* Only duplicates fail, and report errors like close(). */
int fcntl(int fd, int what, ...)
{
    va_list ap;
    va_start(ap, what);
    void *value = va_arg(ap, void *);
    va_end(ap);
    typedef int fcntl_fn(int, int, ...);
    fcntl_fn *f = what == F_DUPFD_CLOEXEC ? next("fcntl") : dlsym(RTLD_NEXT, "fcntl");
    return f ? f(fd, what, value) : -1;
}

/* Only descriptors for writing fail; the descriptor is closed even so. */
int close(int fd)
{
    int (*f)(int) = dlsym(RTLD_NEXT, "close");
    int flags = fcntl(fd, F_GETFL);
    bool writes = flags >= 0 && !(flags & O_PATH) && (flags & O_ACCMODE) != O_RDONLY;
    bool fails = writes && !next("close");
    int result = f(fd);
    if (!fails)
        return result;
    errno = error;
    return -1;
}

void *mmap(void *at, size_t len, int access, int flags, int fd, off_t from)
{
    void *(*f)(void *, size_t, int, int, int, off_t) = fd < 0 ? dlsym(RTLD_NEXT, "mmap")
                                                              : next("mmap");
    return f ? f(at, len, access, flags, fd, from) : MAP_FAILED;
}
