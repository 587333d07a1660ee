/* sink_file.c - a file that appears whole or not at all.
 *
 * It is written without a name where the file system can do that (O_TMPFILE), so that even a
 * killed program leaves nothing behind, and under a hidden name beside the target otherwise. */
#include "port/sink_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct file_sink {
    heft_sink base;
    int fd, dir;
    uint32_t flags;
    bool replaces; /* a file of that name was there */
    char *path;    /* owns the text that name points into */
    const char *name;
    char temporary[NAME_MAX + 1]; /* empty: no name yet */
    char old[NAME_MAX + 1]; /* of the file that is replaced, while it may come back; or empty */
} file_sink;

static heft_status fail(heft_error *err, int os, const char *what)
{
    return heft_os_error(err, os, what);
}

static heft_status exists_already(heft_error *err)
{
    heft_error_plain(err, HEFT_E_ARGUMENT, "exists already and is left alone");
    if (err)
        err->os = EEXIST;
    return HEFT_E_ARGUMENT;
}

/* ---- writing ---- */

static heft_status write_at(heft_sink *s, uint64_t off, const void *data, size_t len,
                            heft_error *err)
{
    const file_sink *f = (const file_sink *)s;
    const uint8_t *p = data;
    while (len) {
        ssize_t n = pwrite(f->fd, p, len, (off_t)off);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail(err, n ? errno : ENOSPC, "writing failed");
        p += n;
        off += (size_t)n;
        len -= (size_t)n;
    }
    return HEFT_OK;
}

/* Space is found to be missing before anything is written; and what follows is faster. */
static heft_status reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    const file_sink *f = (const file_sink *)s;
    if (!size)
        return HEFT_OK;
    if (size > INT64_MAX)
        return fail(err, EFBIG, "no room for the file");
    while (fallocate(f->fd, 0, 0, (off_t)size)) {
        if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)
            return fail(err, errno, "no room for the file");
        if (errno != EINTR)
            break;
    }
    return HEFT_OK;
}

static bool share(heft_sink *s, uint64_t offset, heft_source *from, uint64_t at, uint64_t len)
{
    struct file_clone_range r = { heft_source_descriptor(from), at, len, offset };
    return r.src_fd >= 0 && !ioctl(((const file_sink *)s)->fd, FICLONERANGE, &r);
}

/* ---- names ---- */

static void discard(heft_sink *s)
{
    file_sink *f = (file_sink *)s;
    if (f->fd >= 0)
        close(f->fd);
    if (f->temporary[0])
        unlinkat(f->dir, f->temporary, 0);
    if (f->old[0])
        unlinkat(f->dir, f->old, 0);
    if (f->dir >= 0)
        close(f->dir);
    free(f->path);
    free(f);
}

static void temporary_name(file_sink *f)
{
    uint32_t r;
    heft_os_entropy(&r, sizeof r);
    r ^= (uint32_t)getpid();
    snprintf(f->temporary, sizeof f->temporary, ".%.200s.%08x.tmp", f->name, (unsigned)r);
}

static heft_status open_named(file_sink *f, heft_error *err)
{
    for (int tries = 0; tries < 100; tries++) {
        temporary_name(f);
        f->fd = openat(f->dir, f->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd >= 0)
            return HEFT_OK;
        if (errno != EEXIST)
            break;
    }
    f->temporary[0] = '\0';
    return fail(err, errno, "cannot be created");
}

static heft_status open_target(file_sink *f, heft_error *err)
{
    f->fd = access("/proc/self/fd", X_OK)
                ? -1
                : openat(f->dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
    return f->fd >= 0 ? HEFT_OK : open_named(f, err);
}

/* Gives the nameless file a name; fails with EEXIST when there is one of it. */
static int link_as(const file_sink *f, const char *name)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", f->fd);
    return linkat(AT_FDCWD, self, f->dir, name, AT_SYMLINK_FOLLOW);
}

static heft_status appear_new(file_sink *f, heft_error *err)
{
    if (!f->temporary[0]) {
        if (!link_as(f, f->name))
            return HEFT_OK;
    } else {
        if (!renameat2(f->dir, f->temporary, f->dir, f->name, RENAME_NOREPLACE)) {
            f->temporary[0] = '\0';
            return HEFT_OK;
        }
        if (errno == EINVAL && !linkat(f->dir, f->temporary, f->dir, f->name, 0))
            return HEFT_OK; /* discard() takes the temporary name away */
    }
    return errno == EEXIST ? exists_already(err) : fail(err, errno, "cannot be given its name");
}

static heft_status appear_over(file_sink *f, heft_error *err)
{
    for (int tries = 0; !f->temporary[0] && tries < 100; tries++) {
        temporary_name(f);
        if (!link_as(f, f->temporary))
            break;
        f->temporary[0] = '\0';
        if (errno != EEXIST)
            return fail(err, errno, "cannot be given its name");
    }
    if (renameat(f->dir, f->temporary, f->dir, f->name))
        return fail(err, errno, "cannot be replaced");
    f->temporary[0] = '\0';
    return HEFT_OK;
}

heft_status heft_file_sink_settle(heft_sink *s, heft_error *err)
{
    const file_sink *f = (const file_sink *)s;
    bool sync = f->replaces || f->flags & HEFT_SINK_SYNC;
    return sync && fsync(f->fd) ? fail(err, errno, "writing to disk failed") : HEFT_OK;
}

heft_status heft_file_sink_appear(heft_sink *s, heft_error *err)
{
    file_sink *f = (file_sink *)s;
    bool sync = f->replaces || f->flags & HEFT_SINK_SYNC;
    heft_status st = f->flags & HEFT_SINK_REPLACE ? appear_over(f, err) : appear_new(f, err);
    if (!st && sync && fsync(f->dir) && errno != EINVAL && errno != EBADF)
        st = fail(err, errno, "writing to disk failed");
    return st;
}

/* A second name for the file that is there, should it have to come back. */
heft_status heft_file_sink_keep_old(heft_sink *s, heft_error *err)
{
    file_sink *f = (file_sink *)s;
    char staged[sizeof f->temporary];
    memcpy(staged, f->temporary, sizeof staged);
    int os = f->replaces ? EEXIST : 0;
    for (int tries = 0; os == EEXIST && tries < 100; tries++) {
        temporary_name(f);
        os = linkat(f->dir, f->name, f->dir, f->temporary, 0) ? errno : 0;
    }
    if (!os && f->replaces)
        memcpy(f->old, f->temporary, sizeof f->old);
    memcpy(f->temporary, staged, sizeof staged);
    return os ? fail(err, os, "cannot be kept while it is replaced") : HEFT_OK;
}

void heft_file_sink_undo(heft_sink *s)
{
    file_sink *f = (file_sink *)s;
    if (!f->old[0])
        unlinkat(f->dir, f->name, 0);
    else if (!renameat(f->dir, f->old, f->dir, f->name))
        f->old[0] = '\0';
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    heft_status st = heft_file_sink_settle(s, err);
    if (!st)
        st = heft_file_sink_appear(s, err);
    discard(s);
    return st;
}

static heft_status read_at(heft_sink *s, uint64_t off, void *buf, size_t len, heft_error *err)
{
    const file_sink *f = (const file_sink *)s;
    uint8_t *p = buf;
    while (len) {
        ssize_t n = pread(f->fd, p, len, (off_t)off);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail(err, n ? errno : EIO, "reading back failed");
        p += n;
        off += (size_t)n;
        len -= (size_t)n;
    }
    return HEFT_OK;
}

static heft_status scratch(heft_sink *s, heft_scratch **out, uint64_t bytes, heft_error *err)
{
    return heft_scratch_in(out, ((const file_sink *)s)->dir, bytes, err);
}

static const heft_sink_ops file_ops = {
    .write_at = write_at,
    .reserve = reserve,
    .finish = finish,
    .discard = discard,
    .share = share,
    .read_at = read_at,
    .scratch = scratch,
};

bool heft_sink_is_file(const heft_sink *s)
{
    return s->ops == &file_ops;
}

/* ---- streams ---- */

typedef struct stream_sink {
    heft_sink base;
    int fd;
    bool own;
} stream_sink;

static heft_status write_stream(heft_sink *s, const void *data, size_t len, heft_error *err)
{
    const uint8_t *p = data;
    while (len) {
        ssize_t n = write(((const stream_sink *)s)->fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail(err, errno, "writing failed");
        p += n;
        len -= (size_t)n;
    }
    return HEFT_OK;
}

static void discard_stream(heft_sink *s)
{
    const stream_sink *f = (const stream_sink *)s;
    if (f->own)
        close(f->fd);
    free(s);
}

static heft_status finish_stream(heft_sink *s, heft_error *err)
{
    const stream_sink *f = (const stream_sink *)s;
    heft_status st = f->own && close(f->fd) ? fail(err, errno, "writing failed") : HEFT_OK;
    free(s);
    return st;
}

static const heft_sink_ops stream_ops = {
    .write = write_stream,
    .finish = finish_stream,
    .discard = discard_stream,
};

static heft_status open_stream(heft_sink **out, int fd, bool own, heft_error *err)
{
    stream_sink *f = calloc(1, sizeof *f);
    if (!f) {
        if (own)
            close(fd);
        return heft_error_plain(err, HEFT_E_NOMEM, "no memory for a sink");
    }
    *f = (stream_sink){ { &stream_ops }, fd, own };
    *out = &f->base;
    return HEFT_OK;
}

heft_status heft_sink_fd(heft_sink **out, int fd, heft_error *err)
{
    *out = NULL;
    return open_stream(out, fd, false, err);
}

/* ---- opening ---- */

/* The directory of the target and its name there; a link is followed to what it stands for. */
static heft_status split_path(file_sink *f, const char *path, heft_error *err)
{
    f->path = f->replaces ? realpath(path, NULL) : strdup(path);
    if (!f->path)
        return fail(err, errno, "cannot be created");
    char *slash = strrchr(f->path, '/');
    f->name = slash ? slash + 1 : f->path;
    if (!*f->name || strlen(f->name) > NAME_MAX)
        return fail(err, *f->name ? ENAMETOOLONG : EISDIR, "cannot be created");
    char *keep = slash == f->path ? slash + 1 : slash; /* "/name" lies in "/" */
    char saved = keep ? *keep : '\0';
    if (keep)
        *keep = '\0';
    const char *dir = slash ? f->path : ".";
    f->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->dir < 0 && errno == EACCES)
        f->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC); /* enough, but for syncing */
    int os = errno;
    if (keep)
        *keep = saved;
    return f->dir < 0 ? fail(err, os, "its directory cannot be opened") : HEFT_OK;
}

static heft_status open_file(heft_sink **out, const char *path, const struct stat *old,
                             uint32_t flags, heft_error *err)
{
    file_sink *f = calloc(1, sizeof *f);
    if (!f)
        return heft_error_plain(err, HEFT_E_NOMEM, "no memory for a sink");
    *f = (file_sink){ .base = { &file_ops }, .fd = -1, .dir = -1, .flags = flags, .replaces = old };
    heft_status st = split_path(f, path, err);
    if (!st)
        st = open_target(f, err);
    if (!st && old && fchmod(f->fd, old->st_mode & 07777))
        st = fail(err, errno, "cannot be created");
    if (st)
        discard(&f->base);
    else
        *out = &f->base;
    return st;
}

heft_status heft_sink_file(heft_sink **out, const char *path, uint32_t flags, heft_error *err)
{
    struct stat old;
    *out = NULL;
    if (stat(path, &old)) {
        if (errno != ENOENT)
            return fail(err, errno, "cannot be created");
        if (!lstat(path, &old))
            return fail(err, ENOENT, "is a symbolic link to nothing");
        return open_file(out, path, NULL, flags, err);
    }
    if (S_ISDIR(old.st_mode))
        return fail(err, EISDIR, "cannot be created");
    if (!S_ISREG(old.st_mode)) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        return fd < 0 ? fail(err, errno, "cannot be opened") : open_stream(out, fd, true, err);
    }
    if (!(flags & HEFT_SINK_REPLACE))
        return exists_already(err);
    return open_file(out, path, &old, flags, err);
}
