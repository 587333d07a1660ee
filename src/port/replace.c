/* replace.c - the edited file as a new one, which takes the place of the old one when it is whole and on disk.
 *
 * Data that stays as aligned to the file system's blocks as it was is not copied but shared, where the
 * file system can do that; else it is copied without passing through this program, where the system can
 * do that. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "port/staged.h"

enum {
    BLOCK = 4096,
    STEP = 16 << 20, /* of copying, between two calls of progress */
    BUFFER = 1 << 20,
    XATTR = 64 << 10
};

typedef struct replacing {
    const heft_target *t;
    const heft_edit_options *o;
    heft_staged staged;
    bool no_share, no_copy; /* the system has said that it cannot */
    uint8_t *buf;
    uint64_t done, total;
} replacing;

/* ---- data ---- */

static heft_status step(replacing *r, uint64_t bytes, heft_error *err)
{
    r->done += bytes;
    if (!r->o->progress || r->o->progress(r->o->progress_ctx, r->done, r->total))
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_CANCELLED, "interrupted: it is as it was");
}

static heft_status copy_through(replacing *r, heft_edit_piece p, heft_error *err)
{
    heft_status st = HEFT_OK;
    if (!r->buf)
        r->buf = malloc(BUFFER);
    if (!r->buf)
        return heft_error_plain(err, HEFT_E_NOMEM, "no memory to copy");
    for (uint64_t at = 0, n; at < p.length && !st; at += n) {
        n = p.length - at < BUFFER ? p.length - at : BUFFER;
        st = heft_target_read(r->t->fd, p.from + at, r->buf, (size_t)n, err);
        if (!st)
            st = heft_target_write(r->t, r->staged.fd, p.at + at, r->buf, (size_t)n, err);
        if (!st)
            st = step(r, n, err);
    }
    return st;
}

static bool cannot(int os)
{
    return os == ENOSYS || os == EXDEV || os == EINVAL || os == EOPNOTSUPP || os == EBADF ||
           os == EPERM || os == ENOTTY || os == ETXTBSY;
}

static heft_status copy(replacing *r, heft_edit_piece p, heft_error *err)
{
    while (p.length && !r->no_copy) {
        size_t most = p.length < STEP ? (size_t)p.length : STEP;
        ssize_t n = heft_disk_copy(r->t->disk, r->t->fd, (off_t)p.from, r->staged.fd, (off_t)p.at,
                                   most);
        if (n < 0 && !cannot(errno))
            return heft_os_error(err, errno, "copying failed");
        r->no_copy = n <= 0;
        if (r->no_copy)
            break;
        p = (heft_edit_piece){ p.at + (size_t)n, p.length - (size_t)n, p.from + (size_t)n, NULL };
        heft_status st = step(r, (uint64_t)n, err);
        if (st)
            return st;
    }
    return copy_through(r, p, err);
}

static heft_edit_piece part_of(heft_edit_piece p, uint64_t from, uint64_t len)
{
    return (heft_edit_piece){ p.at + from, len, p.from + from, NULL };
}

/* Whole blocks in the middle are shared; what stands before and behind them is copied. */
static heft_status move(replacing *r, heft_edit_piece p, heft_error *err)
{
    uint64_t head = (BLOCK - p.from % BLOCK) % BLOCK;
    uint64_t middle = p.length > head ? (p.length - head) / BLOCK * BLOCK : 0;
    if (r->no_share || p.from % BLOCK != p.at % BLOCK || !middle)
        return copy(r, p, err);
    heft_edit_piece shared = part_of(p, head, middle);
    if (heft_disk_share(r->t->disk, r->t->fd, (off_t)shared.from, r->staged.fd, (off_t)shared.at,
                        (size_t)middle)) {
        if (!cannot(errno))
            return heft_os_error(err, errno, "copying failed");
        r->no_share = true;
        return copy(r, p, err);
    }
    heft_status st = step(r, middle, err);
    if (!st)
        st = copy(r, part_of(p, 0, head), err);
    return st ? st : copy(r, part_of(p, head + middle, p.length - head - middle), err);
}

static heft_status write_pieces(replacing *r, const heft_edit *e, uint64_t *copied, heft_error *err)
{
    const heft_edit_piece *p;
    size_t n = heft_edit_pieces(e, &p);
    heft_status st = HEFT_OK;
    for (size_t i = 0; i < n; i++)
        r->total += p[i].data ? 0 : p[i].length;
    for (size_t i = 0; i < n && !st; i++)
        st = p[i].data ? heft_target_write(r->t, r->staged.fd, p[i].at, p[i].data,
                                           (size_t)p[i].length, err)
                       : move(r, p[i], err);
    *copied = r->total;
    return st;
}

/* ---- whose it is ---- */

static heft_status keep_xattrs(const replacing *r, heft_error *err)
{
    char *names = malloc(XATTR), *value = malloc(XATTR);
    ssize_t len = names && value ? flistxattr(r->t->fd, names, XATTR) : 0;
    heft_status st = names && value ? HEFT_OK
                                    : heft_error_plain(err, HEFT_E_NOMEM, "no memory to copy");
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

static heft_status appear(replacing *r, heft_error *err)
{
    const heft_target *t = r->t;
    heft_status st = heft_target_check(t, err);
    int os = st ? 0 : heft_staged_replace(&r->staged, t->name);
    if (os)
        st = heft_os_error(err, os, "cannot be replaced");
    if (!st)
        st = heft_disk_sync_saved(t->disk, t->dir, err);
    return st;
}

heft_status heft_replace(const heft_target *t, const heft_edit *e, const heft_edit_options *o,
                         uint64_t *copied, heft_error *err)
{
    replacing r = { .t = t, .o = o };
    heft_status st = HEFT_OK;
    int os = heft_staged_open(&r.staged, t->disk, t->dir, t->name, 0600);
    if (os)
        st = heft_os_error(err, os, "a new file cannot be made in its directory");
    if (!st)
        st = write_pieces(&r, e, copied, err);
    if (!st)
        st = keep_owner(&r, err);
    if (!st && (heft_disk_sync(t->disk, r.staged.fd) || heft_disk_flush(t->disk, r.staged.fd)))
        st = heft_os_error(err, errno, "writing to disk failed");
    if (!st)
        st = appear(&r, err);
    os = heft_staged_close(&r.staged);
    if (os && !st)
        st = heft_os_error(err, os, "saved, but closing it failed");
    free(r.buf);
    return st;
}
