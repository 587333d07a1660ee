/* replace.c - write the edited file as a new file, which replaces the old file once it is complete
 * and on disk. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "port/copy_range.h"
#include "port/staged.h"

enum { XATTR = 64 << 10 };

typedef struct replacement {
    const heft_target *t;
    heft_staged staged;
    heft_range_copier copier;
} replacement;

/* ---- data ---- */

static heft_status write_extents(replacement *r, const heft_edit *e, uint64_t *copied,
                                 heft_error *err)
{
    const heft_edit_extent *p;
    size_t n = heft_edit_extents(e, &p);
    heft_status st = HEFT_OK;
    for (size_t i = 0; i < n; i++)
        r->copier.total += p[i].data ? 0 : p[i].length;
    for (size_t i = 0; i < n && !st; i++)
        st = p[i].data
                 ? heft_target_write(r->t, r->staged.fd, p[i].at, p[i].data, (size_t)p[i].length,
                                     err)
                 : heft_copy_range(&r->copier, p[i].file ? r->t->added_fd : r->t->fd, p[i], err);
    *copied = r->copier.total;
    return st;
}

/* ---- owner, mode and extended attributes ---- */

static heft_status copy_xattrs(const replacement *r, heft_error *err)
{
    char *names = malloc(XATTR), *value = malloc(XATTR);
    ssize_t len = names && value ? flistxattr(r->t->fd, names, XATTR) : 0;
    heft_status st = names && value ? HEFT_OK : heft_error_no_memory(err, "to copy");
    for (const char *name = names; !st && len > 0 && name < names + len; name += strlen(name) + 1) {
        bool is_required = !strncmp(name, "user.", 5) || !strncmp(name, "system.posix_acl", 16);
        ssize_t n = fgetxattr(r->t->fd, name, value, XATTR);
        if (n >= 0 && fsetxattr(r->staged.fd, name, value, (size_t)n, 0) && is_required)
            st = heft_os_error(err, errno,
                               "its extended attributes cannot be copied to the new file");
    }
    free(names);
    free(value);
    return st;
}

/* Set the mode last, since a change of owner clears the set-id bits. */
static heft_status copy_owner_and_mode(const replacement *r, heft_error *err)
{
    const struct stat *old = &r->t->stat_at_open;
    struct stat info;
    if (fstat(r->staged.fd, &info))
        return heft_os_error(err, errno, "its status cannot be read");
    bool has_same_owner = info.st_uid == old->st_uid && info.st_gid == old->st_gid;
    if (!has_same_owner && fchown(r->staged.fd, old->st_uid, old->st_gid))
        return heft_os_error(err, errno, "its owner cannot be given to the new file");
    heft_status st = copy_xattrs(r, err);
    if (!st && fchmod(r->staged.fd, old->st_mode & 07777))
        st = heft_os_error(err, errno, "its mode cannot be given to the new file");
    return st;
}

/* ---- replacing ---- */

heft_status heft_replace(const heft_target *t, const heft_edit_task *task, uint64_t *copied,
                         heft_error *err)
{
    replacement r = { .t = t,
                      .copier = { .disk = t->disk,
                                  .progress = task->progress,
                                  .progress_ctx = task->progress_ctx,
                                  .cancelled_message = task->cancelled_message } };
    heft_status st = HEFT_OK;
    int os = heft_staged_open(&r.staged, t->disk, t->dir, t->name, 0600);
    if (os)
        st = heft_os_error(err, os, "a new file cannot be created in its directory");
    r.copier.to = r.staged.fd;
    if (!st)
        st = write_extents(&r, task->edit, copied, err);
    if (!st)
        st = copy_owner_and_mode(&r, err);
    if (!st && (heft_disk_sync(t->disk, r.staged.fd) || heft_disk_flush(t->disk, r.staged.fd)))
        st = heft_os_error(err, errno, "writing to disk failed");
    if (!st)
        st = heft_target_check_unchanged(t, err);
    os = st ? 0 : heft_staged_replace(&r.staged, t->name);
    if (os)
        st = heft_os_error(err, os, "cannot be replaced");
    if (!st)
        st = heft_disk_sync_dir_after_save(t->disk, t->dir, err);
    os = heft_staged_close(&r.staged);
    if (os && !st)
        st = heft_os_error(err, os, "saved, but closing it failed");
    heft_range_copier_end(&r.copier);
    return st;
}
