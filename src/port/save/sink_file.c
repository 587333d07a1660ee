/* sink_file.c - a sink whose file appears complete or not at all: a staged file that
 * gets the target's name once it is complete and, if requested, on disk. */
#include "port/save/sink_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "port/port.h"
#include "port/save/set_journal.h"

enum { SYNC_BLOCK = 4 << 20 }; /* bytes that a worker writes at a time */

typedef struct file_sink {
    heft_staged_sink s;
    const heft_disk *disk;
    int dir; /* directory of the target */
    bool replaces, may_replace;
    char *path; /* owned; contains `name` */
    const char *name;
} file_sink;

heft_status heft_error_exists(heft_error *err, heft_status st)
{
    return heft_error_os(err, heft_error_plain(err, st, "already exists and was left as it is"),
                         EEXIST);
}

/* ---- writing ---- */

/* Write, and start writing finished blocks to disk while other blocks are made, so that the final
 * sync is short.  The write that ends a block starts it; nearly always all bytes of the block have
 * been written by then. */
heft_status heft_staged_write_at(heft_sink *s, uint64_t off, const void *data, size_t len,
                                 heft_error *err)
{
    const heft_staged_sink *f = (const heft_staged_sink *)s;
    const heft_disk *d = f->staged.disk;
    uint64_t from = off / SYNC_BLOCK * SYNC_BLOCK, to = (off + len) / SYNC_BLOCK * SYNC_BLOCK;
    HEFT_TRY(heft_disk_write_all(d, f->staged.fd, off, data, len, err));
    if (f->syncs && from < to)
        d->start_sync(f->staged.fd, (off_t)from, (off_t)(to - from)); /* sync reports errors */
    return HEFT_OK;
}

heft_status heft_staged_read_at(heft_sink *s, uint64_t off, void *buf, size_t len, heft_error *err)
{
    const heft_staged *f = &((const heft_staged_sink *)s)->staged;
    return heft_disk_read_all(f->disk, f->fd, off, buf, len, err);
}

/* Notice a full disk before anything is written; reserved blocks also make the writes faster. */
heft_status heft_staged_reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    const heft_staged_sink *f = (const heft_staged_sink *)s;
    int os = heft_disk_reserve(f->staged.disk, f->staged.fd, size);
    return os ? heft_os_error(err, os, f->no_space_message) : HEFT_OK;
}

heft_status heft_staged_scratch(heft_sink *s, heft_scratch **out, uint64_t bytes, heft_error *err)
{
    return heft_scratch_in(out, ((const heft_staged_sink *)s)->staged.dir, bytes, err);
}

bool heft_staged_reflink(heft_sink *s, uint64_t offset, heft_source *from, uint64_t at,
                         uint64_t len)
{
    const heft_staged *f = &((const heft_staged_sink *)s)->staged;
    int fd = heft_source_descriptor(from);
    return fd >= 0 && !heft_disk_reflink(f->disk, fd, (off_t)at, f->fd, (off_t)offset, (size_t)len);
}

/* ---- committing ---- */

void heft_file_sink_discard(heft_sink *s)
{
    file_sink *f = (file_sink *)s;
    (void)heft_staged_close(&f->s.staged);
    if (f->dir >= 0)
        close(f->dir);
    free(f->path);
    free(f);
}

static heft_status sync_and_flush(const file_sink *f, heft_error *err)
{
    if (f->s.syncs && heft_disk_sync(f->disk, f->s.staged.fd))
        return heft_os_error(err, errno, "writing to disk failed");
    if (heft_disk_flush(f->disk, f->s.staged.fd))
        return heft_os_error(err, errno, "writing failed");
    return HEFT_OK;
}

heft_status heft_file_sink_stage(heft_sink *s, const char *name, heft_error *err)
{
    file_sink *f = (file_sink *)s;
    heft_status st = sync_and_flush(f, err);
    int os = st ? 0 : heft_staged_commit(&f->s.staged, name);
    return os ? heft_os_error(err, os, "cannot be given a temporary name") : st;
}

/* Give the file its name.  If the error message begins with "saved", the file has got its name. */
static heft_status commit_name(file_sink *f, heft_error *err)
{
    heft_journal_retirement r;
    heft_error retire_error;
    HEFT_TRY(heft_journal_retire_begin(&r, f->disk, f->dir, f->name, f->s.staged.fd, err));
    int os = f->may_replace ? heft_staged_replace(&f->s.staged, f->name)
                            : heft_staged_commit(&f->s.staged, f->name);
    heft_status st = HEFT_OK;
    if (os == EEXIST && !f->may_replace)
        st = heft_error_exists(err, HEFT_E_ARGUMENT);
    else if (os)
        st = heft_os_error(err, os, "cannot be renamed to its final name");
    else if (f->s.syncs)
        st = heft_disk_sync_dir_after_save(f->disk, f->dir, err);
    heft_status retire_status = heft_journal_retire_end(&r, !os, st ? &retire_error : err);
    return st ? st : retire_status;
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    file_sink *f = (file_sink *)s;
    heft_status st = sync_and_flush(f, err);
    if (!st)
        st = commit_name(f, err);
    int os = st ? 0 : heft_staged_close(&f->s.staged);
    heft_file_sink_discard(s);
    return os ? heft_os_error(err, os, "saved, but closing it failed") : st;
}

static const heft_sink_ops file_ops = {
    .size = sizeof(heft_sink_ops),
    .write_at = heft_staged_write_at,
    .reserve = heft_staged_reserve,
    .finish = finish,
    .discard = heft_file_sink_discard,
    .reflink = heft_staged_reflink,
    .read_at = heft_staged_read_at,
    .scratch = heft_staged_scratch,
};

bool heft_sink_is_file(const heft_sink *s)
{
    return s->ops == &file_ops;
}

/* ---- opening ---- */

/* Open the directory of the target.  If the target is a symbolic link to an existing file, that
 * file is replaced. */
static heft_status split_path(file_sink *f, const char *path, heft_error *err)
{
    f->path = f->replaces ? realpath(path, NULL) : strdup(path);
    if (!f->path)
        return heft_os_error(err, errno, "cannot be created");
    const char *slash = strrchr(f->path, '/');
    f->name = slash ? slash + 1 : f->path;
    if (!*f->name || strlen(f->name) > NAME_MAX)
        return heft_os_error(err, *f->name ? ENAMETOOLONG : EISDIR, "cannot be created");
    f->dir = heft_open_folder_of(f->path, O_RDONLY);
    if (f->dir < 0 && errno == EACCES) /* enough for everything but syncing */
        f->dir = heft_open_folder_of(f->path, O_PATH);
    return f->dir < 0 ? heft_os_error(err, errno, "its directory cannot be opened") : HEFT_OK;
}

static heft_status open_file(heft_sink **out, const heft_disk *disk, const char *path,
                             const struct stat *old, uint32_t flags, heft_error *err)
{
    file_sink *f = calloc(1, sizeof *f);
    if (!f)
        return heft_error_no_memory(err, "for a sink");
    bool syncs = flags & HEFT_SINK_SYNC || (old && !(flags & HEFT_SINK_NO_SYNC));
    *f = (file_sink){ .s = { .base = { &file_ops },
                             .staged = { .disk = disk, .fd = -1 },
                             .no_space_message = "cannot reserve disk space",
                             .syncs = syncs },
                      .disk = disk,
                      .dir = -1,
                      .replaces = old,
                      .may_replace = flags & HEFT_SINK_REPLACE };
    heft_recovery earlier;
    bool keeps_stale = flags & HEFT_FILE_SINK_KEEP_STALE;
    heft_status st = split_path(f, path, err);
    if (!st && !keeps_stale)
        st = heft_shard_set_recover(&earlier, disk, f->dir, err);
    if (!st && !keeps_stale)
        heft_staged_remove_stale(disk, f->dir, f->name);
    int os = st ? 0 : heft_staged_open(&f->s.staged, disk, f->dir, f->name, 0666);
    if (!st && !os && old)
        os = heft_copy_access(disk, f->s.staged.fd, old);
    if (os)
        st = heft_os_error(err, os, "cannot be created");
    if (st)
        heft_file_sink_discard(&f->s.base);
    else
        *out = &f->s.base;
    return st;
}

heft_status heft_file_sink_open(heft_sink **out, const heft_disk *disk, const char *path,
                                uint32_t flags, heft_error *err)
{
    struct stat old;
    *out = NULL;
    if (flags & HEFT_SINK_SYNC && flags & HEFT_SINK_NO_SYNC)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "HEFT_SINK_SYNC and HEFT_SINK_NO_SYNC exclude each other");
    if (stat(path, &old)) {
        if (errno != ENOENT)
            return heft_os_error(err, errno, "cannot be created");
        if (!lstat(path, &old))
            return heft_os_error(err, ENOENT, "is a dangling symbolic link");
        return open_file(out, disk, path, NULL, flags, err);
    }
    if (S_ISDIR(old.st_mode))
        return heft_os_error(err, EISDIR, "cannot be created");
    if (!S_ISREG(old.st_mode)) {
        int fd = heft_open_at(AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
        return fd < 0 ? heft_os_error(err, errno, "cannot be opened")
                      : heft_stream_sink(out, disk, fd, true, flags & HEFT_SINK_SYNC, err);
    }
    if (!(flags & HEFT_SINK_REPLACE))
        return heft_error_exists(err, HEFT_E_ARGUMENT);
    return open_file(out, disk, path, &old, flags, err);
}

heft_status heft_sink_open_file(heft_sink **out, const char *path, uint32_t flags, heft_error *err)
{
    *out = NULL;
    if (!path)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "the path to write to is missing");
    if (heft_is_url(path))
        return heft_sink_open_url(out, path, flags, NULL, err);
    return heft_file_sink_open(out, &heft_system_disk, path,
                               flags & ~(uint32_t)HEFT_FILE_SINK_KEEP_STALE, err);
}
