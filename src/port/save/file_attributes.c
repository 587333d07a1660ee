/* file_attributes.c - give a new file the owner, mode and extended attributes of an old one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "port/save/sink_file.h"

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
