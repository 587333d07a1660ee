/* edit_file.c - edit a file in place or by replacing it.  docs/edit.md lists what a kill can leave
 * behind. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "port/save/set_journal.h"
#include "port/save/staged.h"

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
    return heft_target_check_not_shard(t, path, host, err);
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
