/* edit_file.c - edit a file in place or by replacing it.  docs/edit.md lists what a kill can leave
 * behind. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "folder/weight_names.h"
#include "local/overwrite_file.h"
#include "port/save/set_journal.h"
#include "port/save/sink_file.h"
#include "port/system/disk.h"

/* ---- refuse to edit a single shard ---- */

typedef struct index_search {
    int dir;
    const char *name; /* file to be edited */
    const heft_host *host;
    heft_status st;
    heft_error *err;
} index_search;

static heft_status refuse_shard(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    (void)ctx;
    (void)name;
    *out = NULL;
    return heft_error_plain(err, HEFT_E_IO, "only the index is opened");
}

static heft_status open_index(heft_file **out, const index_search *s, const char *index,
                              heft_error *cause)
{
    heft_shard_folder shards = { .size = sizeof shards, .name = index, .open = refuse_shard };
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_source *source;
    o.host = s->host;
    o.shards = &shards;
    *out = NULL;
    heft_status st = heft_source_at(&source, s->dir, index, 0, HEFT_ACCESS_AUTO, cause);
    if (!st)
        return heft_file_open_source(out, source, &o, cause);
    /* a removed file, a directory, a pipe and a symbolic link loop are not an index */
    bool is_file = cause->os != ENOENT && cause->os != EISDIR && cause->os != ESPIPE &&
                   cause->os != ELOOP;
    return is_file ? st : HEFT_E_FORMAT;
}

static bool lists_shard(const heft_file *index, const char *name)
{
    size_t len = strlen(name);
    for (uint32_t i = 0; i < heft_shard_file_count(index); i++) {
        heft_str s = heft_shard_file_at(index, i).name;
        if (s.len == len && !memcmp(s.ptr, name, len))
            return true;
    }
    return false;
}

/* A file that cannot be parsed is not an index.  A file that cannot be read may be an index, so
 * that is an error. */
static void check_index(void *arg, const char *index)
{
    index_search *s = arg;
    heft_file *f;
    heft_error cause;
    heft_str name = { index, strlen(index) };
    if (s->st || !strcmp(index, s->name) || !heft_weight_name_may_be_index_of(index, s->name))
        return;
    heft_status st = open_index(&f, s, index, &cause);
    if (st == HEFT_E_IO || st == HEFT_E_NOMEM || st == HEFT_E_LIMIT) {
        s->st = heft_error_plain(s->err, st, "%q, which may list it as a shard, cannot be read: %s",
                                 name, cause.message);
        heft_error_os(s->err, st, cause.os);
    }
    if (!st && lists_shard(f, s->name))
        s->st = heft_error_plain(s->err, HEFT_E_UNSUPPORTED,
                                 "it is a shard of %q: shards cannot be edited one by one "
                                 "('heft merge' them, edit the result, 'heft split' it again)",
                                 name);
    heft_file_close(f);
}

static heft_status check_folder(int dir, const char *name, const heft_host *host, heft_error *err)
{
    index_search s = { dir, name, host, HEFT_OK, err };
    HEFT_TRY(heft_folder_list(dir, check_index, &s, err));
    return s.st;
}

/* Return HEFT_E_UNSUPPORTED if an index in the file's directory lists the file as a shard.  If
 * `path` is a symbolic link, check the link's directory and name, too. */
static heft_status target_check_not_shard(const heft_target *t, const char *path,
                                          const heft_host *host, heft_error *err)
{
    struct stat info;
    heft_status st = check_folder(t->dir, t->name, host, err);
    if (!st && lstat(path, &info))
        st = heft_os_error(err, errno, "its status cannot be read");
    if (st || !S_ISLNK(info.st_mode))
        return st;
    /* an index may list the symbolic link as well as the file behind the link */
    const char *slash = strrchr(path, '/');
    int dir = heft_open_folder_of(path, O_RDONLY);
    if (dir < 0)
        return heft_os_error(err, errno, "its directory cannot be opened");
    st = check_folder(dir, slash ? slash + 1 : path, host, err);
    close(dir);
    return st;
}

/* ---- the file ---- */

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

heft_status heft_target_check_unchanged(const heft_target *t, heft_error *err)
{
    struct stat now, named;
    bool is_there = !fstat(t->fd, &now) && !fstatat(t->dir, t->name, &named, AT_SYMLINK_NOFOLLOW);
    if (!is_there && errno != ENOENT)
        return heft_os_error(err, errno, "its status cannot be read");
    if (is_there && is_same(&now, &t->stat_at_open) && is_same(&named, &t->stat_at_open))
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_IO,
                            "another program changed the file in the meantime: it was not edited");
}

heft_status heft_target_write(const heft_target *t, int fd, uint64_t at, const void *data,
                              size_t len, heft_error *err)
{
    return heft_disk_write_all(t->disk, fd, at, data, len, err);
}

heft_status heft_target_sync_dir(const heft_target *t, heft_error *err)
{
    return heft_disk_sync_dir(t->disk, t->dir) ? heft_os_error(err, errno, "writing to disk failed")
                                               : HEFT_OK;
}

void heft_target_close(heft_target *t)
{
    if (t->fd >= 0)
        close(t->fd); /* releases the lock */
    if (t->dir >= 0)
        close(t->dir);
    free(t->path);
}

static heft_status open_file(heft_target *t, const heft_disk *disk, const char *path,
                             heft_error *err)
{
    *t = (heft_target){ .disk = disk, .fd = -1, .dir = -1, .added_fd = -1 };
    t->path = realpath(path, NULL);
    if (!t->path || stat(t->path, &t->stat_at_open))
        return heft_os_error(err, errno, "cannot be opened");
    if (S_ISDIR(t->stat_at_open.st_mode))
        return heft_os_error(err, EISDIR, "cannot be edited");
    if (!S_ISREG(t->stat_at_open.st_mode))
        return heft_os_error(err, ESPIPE, "is a pipe or a device, not a file");
    /* refuse a read-only file even if the process has the privilege to write it */
    if (!(t->stat_at_open.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)))
        return heft_os_error(err, EACCES, "is read-only");
    t->name = strrchr(t->path, '/') + 1;
    t->dir = heft_open_folder_of(t->path, O_RDONLY);
    if (t->dir < 0)
        return heft_os_error(err, errno, "its directory cannot be opened");
    t->fd = heft_open_at(t->dir, t->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (t->fd < 0)
        return heft_os_error(err, errno, "cannot be written to");
    if (heft_disk_lock(disk, t->fd) && errno == EWOULDBLOCK)
        return heft_os_error(err, EBUSY, "another program is editing it");
    if (fstat(t->fd, &t->stat_at_open))
        return heft_os_error(err, errno, "its status cannot be read");
    return heft_target_check_unchanged(t, err);
}

heft_status heft_target_open(heft_target *t, bool *undone, const heft_disk *disk, const char *path,
                             const heft_host *host, bool is_dry_run, heft_error *err)
{
    heft_recovery earlier;
    *undone = false;
    *t = (heft_target){ .fd = -1, .dir = -1, .added_fd = -1 };
    if (!is_dry_run)
        HEFT_TRY(heft_shard_set_recover_path(&earlier, disk, path, err));
    HEFT_TRY(open_file(t, disk, path, err));
    if (!is_dry_run) { /* in a dry run heft_file_open() reports a journal */
        heft_staged_remove_stale(t->disk, t->dir, t->name);
        HEFT_TRY(heft_journal_undo(undone, t, err));
        if (*undone && fstat(t->fd, &t->stat_at_open))
            return heft_os_error(err, errno, "its status cannot be read");
    }
    return target_check_not_shard(t, path, host, err);
}

/* ---- the edit ---- */

void heft_edit_describe(heft_edit_result *r, const heft_target *t, const heft_edit *e)
{
    const heft_edit_extent *extents;
    size_t n = heft_edit_extents(e, &extents);
    for (size_t i = 0; i < n; i++)
        r->written += extents[i].data ? extents[i].length : 0;
    r->size = heft_edit_size(e);
    r->in_place = heft_edit_is_in_place(e) && heft_journal_fits(t);
    r->hard_links = (uint32_t)(t->stat_at_open.st_nlink - 1);
}

heft_status heft_target_apply(heft_edit_result *r, const heft_target *t, const heft_edit_task *a,
                              heft_error *err)
{
    if (r->in_place)
        return heft_journal_edit(&r->changed, t, a, err);
    r->changed = true;
    return heft_replace(t, a, &r->copied, err);
}

heft_status heft_edit_file_on(const heft_disk *disk, heft_edit_result *out, const char *path,
                              const heft_edit_options *opt, heft_error *err)
{
    heft_error own;
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_open_options open = HEFT_OPEN_OPTIONS_INIT;
    heft_edit_result r = { .in_place = false };
    heft_target t;
    heft_file *f = NULL;
    heft_edit *e = NULL;
    err = heft_error_begin(err, &own);
    heft_status st = heft_sized_copy(&o, sizeof o, opt, err);
    if (out)
        *out = r;
    if (!st && !path)
        st = heft_error_plain(err, HEFT_E_ARGUMENT, "the path of the file to edit is missing");
    if (st)
        return st;
    st = heft_target_open(&t, &r.rolled_back, disk, path, o.host, o.dry_run, err);
    open.access = (uint8_t)heft_edit_access;
    open.host = o.host;
    open.limits = o.limits;
    if (!st)
        st = heft_file_open(&f, t.path, &open, err);
    if (!st)
        st = heft_edit_plan(&e, f, &o, err);
    heft_file_close(f); /* unmap the file before the edit changes it */
    if (!st)
        heft_edit_describe(&r, &t, e);
    heft_edit_task a = { e, o.progress, o.ctx, "interrupted: the file is unchanged" };
    if (!st && !o.dry_run)
        st = heft_target_apply(&r, &t, &a, err);
    heft_edit_close(e);
    heft_target_close(&t);
    if (out)
        *out = r;
    return heft_error_end(err, st);
}

heft_status heft_edit_recover_on(const heft_disk *disk, bool *undone, const char *path,
                                 heft_error *err)
{
    heft_error own;
    heft_recovery earlier;
    heft_target t = { .fd = -1, .dir = -1, .added_fd = -1 };
    struct stat info;
    err = heft_error_begin(err, &own);
    *undone = false;
    heft_status st = heft_shard_set_recover_path(&earlier, disk, path, err);
    if (!st && stat(path, &info))
        st = heft_os_error(err, errno, "cannot be opened");
    bool is_folder = !st && S_ISDIR(info.st_mode);
    if (!st && !is_folder)
        st = open_file(&t, disk, path, err);
    if (!st && !is_folder)
        st = heft_journal_undo(undone, &t, err);
    if (!st && !is_folder)
        st = heft_overwrite_recover(undone, &t, err);
    *undone = *undone || earlier != HEFT_RECOVERY_NONE;
    heft_target_close(&t);
    return heft_error_end(err, st);
}

heft_status heft_file_edit(heft_edit_result *out, const char *path, const heft_edit_options *opt,
                           heft_error *err)
{
    return heft_edit_file_on(&heft_system_disk, out, path, opt, err);
}

heft_status heft_edit_recover(bool *undone, const char *path, heft_error *err)
{
    return heft_edit_recover_on(&heft_system_disk, undone, path, err);
}
