/* sink_file.c - a file that appears whole or not at all: a staged file (staged.h) that gets the target's name once it
 * is complete, and on disk where that is asked for. */
#include "port/sink_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "port/set_journal.h"
#include "port/staged.h"

enum { SYNC_BLOCK = 4 << 20 }; /* as much as a worker writes at a time */

typedef struct file_sink {
    heft_sink base;
    const heft_disk *disk;
    heft_staged staged;
    int dir; /* of the target */
    bool replaces, may_replace, syncs;
    char *path; /* owns the text that name points into */
    const char *name;
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

/* Begin to write finished blocks to disk while others are made, so that the last sync is short.  Each block of the
 * file is started by the write that ends it, nearly always after all of its bytes were written. */
static void start_sync(const file_sink *f, uint64_t off, size_t len)
{
    uint64_t from = off / SYNC_BLOCK * SYNC_BLOCK, to = (off + len) / SYNC_BLOCK * SYNC_BLOCK;
    if (from < to)
        f->disk->start_sync(f->staged.fd, (off_t)from, (off_t)(to - from)); /* syncing tells */
}

static heft_status write_at(heft_sink *s, uint64_t off, const void *data, size_t len,
                            heft_error *err)
{
    const file_sink *f = (const file_sink *)s;
    heft_status st = heft_disk_write_all(f->disk, f->staged.fd, off, data, len, err);
    if (!st && f->syncs)
        start_sync(f, off, len);
    return st;
}

/* Space is found to be missing before anything is written; and what follows is faster. */
static heft_status reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    const file_sink *f = (const file_sink *)s;
    int os = heft_disk_reserve(f->disk, f->staged.fd, size);
    return os ? fail(err, os, "no room for the file") : HEFT_OK;
}

static bool share(heft_sink *s, uint64_t offset, heft_source *from, uint64_t at, uint64_t len)
{
    const file_sink *f = (const file_sink *)s;
    int fd = heft_source_descriptor(from);
    return fd >= 0 &&
           !heft_disk_share(f->disk, fd, (off_t)at, f->staged.fd, (off_t)offset, (size_t)len);
}

static heft_status read_at(heft_sink *s, uint64_t off, void *buf, size_t len, heft_error *err)
{
    const file_sink *f = (const file_sink *)s;
    return heft_disk_read_all(f->disk, f->staged.fd, off, buf, len, err);
}

static heft_status scratch(heft_sink *s, heft_scratch **out, uint64_t bytes, heft_error *err)
{
    return heft_scratch_in(out, ((const file_sink *)s)->dir, bytes, err);
}

/* ---- appearing ---- */

static void discard(heft_sink *s)
{
    file_sink *f = (file_sink *)s;
    (void)heft_staged_close(&f->staged);
    if (f->dir >= 0)
        close(f->dir);
    free(f->path);
    free(f);
}

static heft_status settle(const file_sink *f, heft_error *err)
{
    if (f->syncs && heft_disk_sync(f->disk, f->staged.fd))
        return fail(err, errno, "writing to disk failed");
    return heft_disk_flush(f->disk, f->staged.fd) ? fail(err, errno, "writing failed") : HEFT_OK;
}

heft_status heft_file_sink_stage(heft_sink *s, const char *name, heft_error *err)
{
    file_sink *f = (file_sink *)s;
    heft_status st = settle(f, err);
    int os = st ? 0 : heft_staged_appear(&f->staged, name);
    return os ? fail(err, os, "cannot be given a name") : st;
}

static heft_status appear(file_sink *f, heft_error *err)
{
    int os = f->may_replace ? heft_staged_replace(&f->staged, f->name)
                            : heft_staged_appear(&f->staged, f->name);
    if (os == EEXIST && !f->may_replace)
        return exists_already(err);
    if (os)
        return fail(err, os, "cannot be given its name");
    return f->syncs ? heft_disk_sync_saved(f->disk, f->dir, err) : HEFT_OK;
}

/* With a message that begins with "saved" the file has its name. */
static heft_status appear_and_retire(file_sink *f, heft_error *err)
{
    heft_retiring r;
    heft_error worse;
    heft_status st = heft_retire_begin(&r, f->disk, f->dir, f->name, f->staged.fd, err);
    if (st)
        return st;
    st = appear(f, err);
    heft_status end = heft_retire_end(&r, st ? &worse : err);
    return st ? st : end;
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    file_sink *f = (file_sink *)s;
    heft_status st = settle(f, err);
    if (!st)
        st = appear_and_retire(f, err);
    int os = st ? 0 : heft_staged_close(&f->staged);
    discard(s);
    return os ? fail(err, os, "saved, but closing it failed") : st;
}

static const heft_sink_ops file_ops = {
    .size = sizeof(heft_sink_ops),
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

/* ---- opening ---- */

/* Open the directory of the target; a link is followed to what it stands for. */
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
    f->dir = heft_open_at(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->dir < 0 && errno == EACCES) /* enough, but for syncing */
        f->dir = heft_open_at(AT_FDCWD, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int os = errno;
    if (keep)
        *keep = saved;
    return f->dir < 0 ? fail(err, os, "its directory cannot be opened") : HEFT_OK;
}

/* Owner, group and permissions of the file that is replaced, as far as this process may set them: who could read the
 * old file reads the new one, and nobody else does.  The mode comes last, since a change of owner takes bits of it away.
 * A set-id bit is not kept for another owner. */
static int keep_access(const file_sink *f, const struct stat *old)
{
    struct stat is;
    mode_t mode = old->st_mode & 07777;
    if (fstat(f->staged.fd, &is))
        return errno;
    bool is_ours = is.st_uid == old->st_uid && is.st_gid == old->st_gid;
    if (!is_ours && fchown(f->staged.fd, old->st_uid, old->st_gid))
        mode &= 01777;
    return f->disk->set_mode(f->staged.fd, mode) ? errno : 0;
}

static heft_status open_staged(file_sink *f, const struct stat *old, uint32_t flags,
                               heft_error *err)
{
    if (!(flags & HEFT_FILE_SINK_UNSWEPT))
        heft_staged_sweep(f->disk, f->dir, f->name);
    int os = heft_staged_open(&f->staged, f->disk, f->dir, f->name, 0666);
    if (!os && old)
        os = keep_access(f, old);
    return os ? fail(err, os, "cannot be created") : HEFT_OK;
}

static heft_status open_file(heft_sink **out, const heft_disk *disk, const char *path,
                             const struct stat *old, uint32_t flags, heft_error *err)
{
    file_sink *f = calloc(1, sizeof *f);
    if (!f)
        return heft_error_no_memory(err, "for a sink");
    *f = (file_sink){ .base = { &file_ops },
                      .disk = disk,
                      .staged = { .disk = disk, .fd = -1 },
                      .dir = -1,
                      .replaces = old,
                      .may_replace = flags & HEFT_SINK_REPLACE,
                      .syncs = flags & HEFT_SINK_SYNC || (old && !(flags & HEFT_SINK_NO_SYNC)) };
    heft_recovery earlier;
    heft_status st = split_path(f, path, err);
    if (!st)
        st = heft_set_recover(&earlier, disk, f->dir, err);
    if (!st)
        st = open_staged(f, old, flags, err);
    if (st)
        discard(&f->base);
    else
        *out = &f->base;
    return st;
}

heft_status heft_file_sink_open(heft_sink **out, const heft_disk *disk, const char *path,
                                uint32_t flags, heft_error *err)
{
    struct stat old;
    *out = NULL;
    if (flags & HEFT_SINK_SYNC && flags & HEFT_SINK_NO_SYNC)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "a file is to be synced and not to be synced");
    if (stat(path, &old)) {
        if (errno != ENOENT)
            return fail(err, errno, "cannot be created");
        if (!lstat(path, &old))
            return fail(err, ENOENT, "is a symbolic link to nothing");
        return open_file(out, disk, path, NULL, flags, err);
    }
    if (S_ISDIR(old.st_mode))
        return fail(err, EISDIR, "cannot be created");
    if (!S_ISREG(old.st_mode)) {
        int fd = heft_open_at(AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
        return fd < 0 ? fail(err, errno, "cannot be opened")
                      : heft_stream_sink(out, disk, fd, true, flags & HEFT_SINK_SYNC, err);
    }
    if (!(flags & HEFT_SINK_REPLACE))
        return exists_already(err);
    return open_file(out, disk, path, &old, flags, err);
}

heft_status heft_sink_open_file(heft_sink **out, const char *path, uint32_t flags, heft_error *err)
{
    *out = NULL;
    if (!path)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "there is no path to write to");
    return heft_file_sink_open(out, &heft_system_disk, path,
                               flags & ~(uint32_t)HEFT_FILE_SINK_UNSWEPT, err);
}
