/* replace.c - the edited file as a new one, which takes the place of the old one when it is whole and on disk. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "port/copy_range.h"
#include "port/staged.h"

enum { XATTR = 64 << 10 };

typedef struct replacing {
    const heft_target *t;
    heft_staged staged;
    heft_range_copier mover;
} replacing;

/* ---- data ---- */

static heft_status write_pieces(replacing *r, const heft_edit *e, uint64_t *copied, heft_error *err)
{
    const heft_edit_extent *p;
    size_t n = heft_edit_extents(e, &p);
    heft_status st = HEFT_OK;
    for (size_t i = 0; i < n; i++)
        r->mover.total += p[i].data ? 0 : p[i].length;
    for (size_t i = 0; i < n && !st; i++)
        st = p[i].data ? heft_target_write(r->t, r->staged.fd, p[i].at, p[i].data,
                                           (size_t)p[i].length, err)
                       : heft_copy_range(&r->mover, p[i].file ? r->t->added : r->t->fd, p[i], err);
    *copied = r->mover.total;
    return st;
}

/* ---- whose it is ---- */

static heft_status keep_xattrs(const replacing *r, heft_error *err)
{
    char *names = malloc(XATTR), *value = malloc(XATTR);
    ssize_t len = names && value ? flistxattr(r->t->fd, names, XATTR) : 0;
    heft_status st = names && value ? HEFT_OK : heft_error_no_memory(err, "to copy");
    for (const char *name = names; !st && len > 0 && name < names + len; name += strlen(name) + 1) {
        bool own = !strncmp(name, "user.", 5) || !strncmp(name, "system.posix_acl", 16);
        ssize_t n = fgetxattr(r->t->fd, name, value, XATTR);
        if (n >= 0 && fsetxattr(r->staged.fd, name, value, (size_t)n, 0) && own)
            st = heft_os_error(err, errno, "its attributes cannot be kept");
    }
    free(names);
    free(value);
    return st;
}

/* The mode comes last: a change of owner takes bits of it away. */
static heft_status keep_owner(const replacing *r, heft_error *err)
{
    const struct stat *was = &r->t->was;
    struct stat is;
    if (fstat(r->staged.fd, &is))
        return heft_os_error(err, errno, "cannot be looked at");
    bool is_ours = is.st_uid == was->st_uid && is.st_gid == was->st_gid;
    if (!is_ours && fchown(r->staged.fd, was->st_uid, was->st_gid))
        return heft_os_error(err, errno, "its owner cannot be kept in a new file");
    heft_status st = keep_xattrs(r, err);
    if (!st && fchmod(r->staged.fd, was->st_mode & 07777))
        st = heft_os_error(err, errno, "its mode cannot be kept in a new file");
    return st;
}

/* ---- the change ---- */

heft_status heft_replace(const heft_target *t, const heft_applying *a, uint64_t *copied,
                         heft_error *err)
{
    replacing r = { .t = t,
                    .mover = { .disk = t->disk,
                               .progress = a->progress,
                               .progress_ctx = a->progress_ctx,
                               .stopped = a->stopped } };
    heft_status st = HEFT_OK;
    int os = heft_staged_open(&r.staged, t->disk, t->dir, t->name, 0600);
    if (os)
        st = heft_os_error(err, os, "a new file cannot be made in its directory");
    r.mover.to = r.staged.fd;
    if (!st)
        st = write_pieces(&r, a->e, copied, err);
    if (!st)
        st = keep_owner(&r, err);
    if (!st && (heft_disk_sync(t->disk, r.staged.fd) || heft_disk_flush(t->disk, r.staged.fd)))
        st = heft_os_error(err, errno, "writing to disk failed");
    if (!st)
        st = heft_target_check(t, err);
    os = st ? 0 : heft_staged_replace(&r.staged, t->name);
    if (os)
        st = heft_os_error(err, os, "cannot be replaced");
    if (!st)
        st = heft_disk_sync_saved(t->disk, t->dir, err);
    os = heft_staged_close(&r.staged);
    if (os && !st)
        st = heft_os_error(err, os, "saved, but closing it failed");
    heft_range_copier_end(&r.mover);
    return st;
}
