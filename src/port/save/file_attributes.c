/* file_attributes.c - give a new file the owner, mode and extended attributes of an old one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "port/save/sink_file.h"
#include "port/system/disk.h"

typedef struct replacement {
    const heft_target *t;
    heft_staged staged;
    heft_range_copier copier;
} replacement;

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
        st = heft_copy_file_attributes(r.staged.fd, t, err);
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

enum { XATTR = 64 << 10 };

static heft_status copy_xattrs(int to, int from, heft_error *err)
{
    char *names = malloc(XATTR), *value = malloc(XATTR);
    ssize_t len = names && value ? flistxattr(from, names, XATTR) : 0;
    heft_status st = names && value ? HEFT_OK : heft_error_no_memory(err, "to copy");
    for (const char *name = names; !st && len > 0 && name < names + len; name += strlen(name) + 1) {
        bool is_required = !strncmp(name, "user.", 5) || !strncmp(name, "system.posix_acl", 16);
        ssize_t n = fgetxattr(from, name, value, XATTR);
        if (n >= 0 && fsetxattr(to, name, value, (size_t)n, 0) && is_required)
            st = heft_os_error(err, errno,
                               "its extended attributes cannot be copied to the new file");
    }
    free(names);
    free(value);
    return st;
}

/* Set the mode last, since a change of owner clears the set-id bits. */
heft_status heft_copy_file_attributes(int to, const heft_target *t, heft_error *err)
{
    const struct stat *old = &t->stat_at_open;
    struct stat info;
    if (fstat(to, &info))
        return heft_os_error(err, errno, "its status cannot be read");
    bool has_same_owner = info.st_uid == old->st_uid && info.st_gid == old->st_gid;
    if (!has_same_owner && fchown(to, old->st_uid, old->st_gid))
        return heft_os_error(err, errno, "its owner cannot be given to the new file");
    HEFT_TRY(copy_xattrs(to, t->fd, err));
    if (fchmod(to, old->st_mode & 07777))
        return heft_os_error(err, errno, "its mode cannot be given to the new file");
    return HEFT_OK;
}

int heft_copy_access(const heft_disk *disk, int fd, const struct stat *old)
{
    struct stat info;
    mode_t mode = old->st_mode & 07777;
    if (fstat(fd, &info))
        return errno;
    bool has_same_owner = info.st_uid == old->st_uid && info.st_gid == old->st_gid;
    if (!has_same_owner && fchown(fd, old->st_uid, old->st_gid))
        mode &= 01777;
    return disk->set_mode(fd, mode) ? errno : 0;
}
