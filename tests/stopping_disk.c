/* stopping_disk.c - system calls on files that fail, or kill the program, at a chosen call. */
#include "stopping_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heft_test.h"

heft_stopping heft_stop;

/* Count a call. Kill the program if the call is to be killed; return true and set errno if the
 * call fails. */
static bool fails(void)
{
    heft_stop.calls++;
    if (heft_stop.touch && heft_stop.calls == 1) {
        FILE *f = fopen(heft_stop.touch, "a");
        fputc('x', f);
        fclose(f);
    }
    if (heft_stop.failure == HEFT_KILLED && heft_stop.calls == heft_stop.at)
        raise(SIGKILL);
    errno = heft_stop.os;
    return (heft_stop.failure == HEFT_FAILS_ONCE && heft_stop.calls == heft_stop.at) ||
           (heft_stop.failure == HEFT_FAILS_FROM && heft_stop.calls >= heft_stop.at);
}

static ssize_t stopping_write(int fd, const void *data, size_t len, off_t at)
{
    if (fails())
        return -1;
    if (heft_stop.failure == HEFT_TORN && heft_stop.calls == heft_stop.at) {
        (void)!heft_system_disk.write(fd, data, len / 2 + 1, at);
        raise(SIGKILL);
    }
    return heft_system_disk.write(fd, data, len, at);
}

static int stopping_truncate(int fd, off_t size)
{
    return fails() ? -1 : heft_system_disk.truncate(fd, size);
}

/* Do not sync: the writes of a killed program survive anyway; only a power failure would lose
 * them. */
static int stopping_sync(int fd)
{
    (void)fd;
    return fails() ? -1 : 0;
}

static int stopping_create(int dir, const char *name, int flags, mode_t mode)
{
    if (heft_stop.no_unnamed && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return fails() ? -1 : heft_system_disk.create(dir, name, flags, mode);
}

static int stopping_name(int fd, int dir, const char *name)
{
    return fails() ? -1 : heft_system_disk.name(fd, dir, name);
}

static int stopping_rename(int dir, const char *from, const char *to)
{
    return fails() ? -1 : heft_system_disk.rename(dir, from, to);
}

static int stopping_rename_new(int dir, const char *from, const char *to)
{
    return fails() ? -1 : heft_system_disk.rename_new(dir, from, to);
}

static int stopping_remove(int dir, const char *name)
{
    return fails() ? -1 : heft_system_disk.remove(dir, name);
}

static ssize_t stopping_copy(int from, off_t at, int to, off_t to_at, size_t len)
{
    if (heft_stop.no_copy) {
        errno = EXDEV;
        return -1;
    }
    return fails() ? -1 : heft_system_disk.copy(from, at, to, to_at, len);
}

static int stopping_reflink(int from, off_t at, int to, off_t to_at, size_t len)
{
    return fails() ? -1 : heft_system_disk.reflink(from, at, to, to_at, len);
}

/* Close the file even if the call fails: an open descriptor would keep its lock. */
static int stopping_close(int fd)
{
    bool failed = fails();
    int os = errno;
    heft_system_disk.close(fd);
    errno = os;
    return failed ? -1 : 0;
}

static int stopping_flush(int fd)
{
    return fails() ? -1 : heft_system_disk.flush(fd);
}

static int stopping_link(int dir, const char *from, const char *to)
{
    return fails() ? -1 : heft_system_disk.link(dir, from, to);
}

static int stopping_set_mode(int fd, mode_t mode)
{
    return fails() ? -1 : heft_system_disk.set_mode(fd, mode);
}

static int stopping_reserve(int fd, off_t size)
{
    return fails() ? -1 : heft_system_disk.reserve(fd, size);
}

/* Never fail or kill these calls: reads and hints change nothing, and locks end with the
 * program. */
static ssize_t plain_read(int fd, void *buf, size_t len, off_t at)
{
    return heft_system_disk.read(fd, buf, len, at);
}

static int plain_start_sync(int fd, off_t at, off_t len)
{
    return heft_system_disk.start_sync(fd, at, len);
}

static int plain_lock(int fd)
{
    return heft_system_disk.lock(fd);
}

const heft_disk heft_stopping_disk = {
    .read = plain_read,
    .start_sync = plain_start_sync,
    .lock = plain_lock,
    .close = stopping_close,
    .flush = stopping_flush,
    .link = stopping_link,
    .set_mode = stopping_set_mode,
    .reserve = stopping_reserve,
    .write = stopping_write,
    .truncate = stopping_truncate,
    .sync = stopping_sync,
    .create = stopping_create,
    .name = stopping_name,
    .rename = stopping_rename,
    .rename_new = stopping_rename_new,
    .remove = stopping_remove,
    .copy = stopping_copy,
    .reflink = stopping_reflink,
};

bool heft_test_is_killed(heft_disk_failure failure, unsigned at, heft_status (*fn)(void *ctx),
                         void *ctx)
{
    pid_t child = fork();
    int exit_status;
    assert_true(child >= 0);
    if (!child) {
        heft_stop.failure = failure;
        heft_stop.at = at;
        heft_stop.calls = 0;
        _exit(fn(ctx) ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &exit_status, 0), child);
    assert_true(WIFSIGNALED(exit_status) || !WEXITSTATUS(exit_status));
    return WIFSIGNALED(exit_status);
}
