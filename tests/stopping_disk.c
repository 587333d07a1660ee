#include "stopping_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heft_test.h"

heft_stopping heft_stop;

static bool stops(void)
{
    heft_stop.calls++;
    if (heft_stop.touch && heft_stop.calls == 1) {
        FILE *f = fopen(heft_stop.touch, "a");
        fputc('x', f);
        fclose(f);
    }
    if (heft_stop.what == HEFT_KILLED && heft_stop.calls == heft_stop.at)
        raise(SIGKILL);
    bool goes_on = heft_stop.what == HEFT_FAILS_ON;
    bool fails = goes_on ? heft_stop.calls >= heft_stop.at : heft_stop.calls == heft_stop.at;
    errno = heft_stop.os;
    return (heft_stop.what == HEFT_FAILS || goes_on) && fails;
}

static ssize_t stopping_write(int fd, const void *data, size_t len, off_t at)
{
    if (stops())
        return -1;
    if (heft_stop.what == HEFT_TORN && heft_stop.calls == heft_stop.at) {
        (void)!heft_system_disk.write(fd, data, len / 2 + 1, at);
        raise(SIGKILL);
    }
    return heft_system_disk.write(fd, data, len, at);
}

static int stopping_truncate(int fd, off_t size)
{
    return stops() ? -1 : heft_system_disk.truncate(fd, size);
}

/* What a killed program has written stays written: only a machine that is cut off needs the disk. */
static int stopping_sync(int fd)
{
    (void)fd;
    return stops() ? -1 : 0;
}

static int stopping_create(int dir, const char *name, int flags, mode_t mode)
{
    if (heft_stop.no_unnamed && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return stops() ? -1 : heft_system_disk.create(dir, name, flags, mode);
}

static int stopping_name(int fd, int dir, const char *name)
{
    return stops() ? -1 : heft_system_disk.name(fd, dir, name);
}

static int stopping_rename(int dir, const char *from, const char *to)
{
    return stops() ? -1 : heft_system_disk.rename(dir, from, to);
}

static int stopping_rename_new(int dir, const char *from, const char *to)
{
    return stops() ? -1 : heft_system_disk.rename_new(dir, from, to);
}

static int stopping_remove(int dir, const char *name)
{
    return stops() ? -1 : heft_system_disk.remove(dir, name);
}

static ssize_t stopping_copy(int from, off_t at, int to, off_t to_at, size_t len)
{
    if (heft_stop.no_copy) {
        errno = EXDEV;
        return -1;
    }
    return stops() ? -1 : heft_system_disk.copy(from, at, to, to_at, len);
}

static int stopping_share(int from, off_t at, int to, off_t to_at, size_t len)
{
    return stops() ? -1 : heft_system_disk.reflink(from, at, to, to_at, len);
}

/* The call happens all the same: a descriptor that stays open would stay locked. */
static int stopping_close(int fd)
{
    bool fails = stops();
    int os = errno;
    heft_system_disk.close(fd);
    errno = os;
    return fails ? -1 : 0;
}

static int stopping_flush(int fd)
{
    return stops() ? -1 : heft_system_disk.flush(fd);
}

static int stopping_link(int dir, const char *from, const char *to)
{
    return stops() ? -1 : heft_system_disk.link(dir, from, to);
}

static int stopping_set_mode(int fd, mode_t mode)
{
    return stops() ? -1 : heft_system_disk.set_mode(fd, mode);
}

static int stopping_reserve(int fd, off_t size)
{
    return stops() ? -1 : heft_system_disk.reserve(fd, size);
}

/* What these do is not worth a kill: reading and hints change nothing, and locks end with the program. */
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
    .reflink = stopping_share,
};

bool heft_test_is_killed(heft_trouble what, unsigned at, heft_status (*fn)(void *ctx), void *ctx)
{
    pid_t child = fork();
    int how;
    assert_true(child >= 0);
    if (!child) {
        heft_stop.what = what;
        heft_stop.at = at;
        heft_stop.calls = 0;
        _exit(fn(ctx) ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) || !WEXITSTATUS(how));
    return WIFSIGNALED(how);
}
