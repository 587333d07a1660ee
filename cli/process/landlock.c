#include "process/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/unistd.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

/* The C library has no functions for Landlock's calls, and the kernel's headers may be older than
 * the kernel. Versions of Landlock's ABI: 1, Linux 5.13; 2, 5.19; 3, 6.2; 4, 6.7; 5, 6.10; 6,
 * 6.12. */
enum {
    FS_VERSION_1 = (1 << 13) - 1, /* all rights of version 1 */
    FS_REFER = 1 << 13,           /* version 2: rename and link across folders */
    FS_TRUNCATE = 1 << 14,        /* version 3 */
    FS_IOCTL_DEV = 1 << 15,       /* version 5; allowed for no file */
    NET_BIND = 1,                 /* version 4: TCP */
    NET_CONNECT = 2,
    SCOPE_ALL = 3, /* version 6: abstract Unix sockets, signals */
};

struct ruleset {
    uint64_t fs, net, scoped;
};

/* Return the restrictions that the given version of the ABI supports. */
static struct ruleset handled_by(long version, bool allows_tcp)
{
    struct ruleset r = { .fs = FS_VERSION_1 };
    r.fs |= (version >= 2 ? FS_REFER : 0) | (version >= 3 ? FS_TRUNCATE : 0) |
            (version >= 5 ? FS_IOCTL_DEV : 0);
    r.net = version < 4 ? 0 : allows_tcp ? NET_BIND : NET_BIND | NET_CONNECT;
    r.scoped = version >= 6 ? SCOPE_ALL : 0;
    return r;
}

static void give_up(landlock *l)
{
    l->os = errno;
    if (l->ruleset >= 0)
        close(l->ruleset);
    l->ruleset = -1;
}

/* An older kernel accepts the longer struct if the unknown fields are zero. */
void landlock_begin(landlock *l, bool allows_tcp)
{
    long version = syscall(__NR_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    struct ruleset r = handled_by(version, allows_tcp);
    *l = (landlock){ .ruleset = -1, .handled = r.fs };
    if (version > 0)
        l->ruleset = (int)syscall(__NR_landlock_create_ruleset, &r, sizeof r, 0);
    if (l->ruleset < 0)
        give_up(l);
}

static uint64_t rights_of(unsigned access)
{
    uint64_t rights = 0;
    if (access & (ACCESS_READ | ACCESS_WRITE))
        rights |= LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    if (access & (ACCESS_SPILL | ACCESS_WRITE))
        rights |= LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                  LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE | FS_TRUNCATE;
    if (access & ACCESS_FOLDERS)
        rights |= LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR;
    if (access & ACCESS_MOVE)
        rights |= FS_REFER;
    return rights;
}

/* EBADFD: a pipe or a file in memory: Landlock does not restrict files without a path. */
static int add_rule(const landlock *l, int fd, uint64_t rights)
{
    const uint64_t for_files = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                               FS_TRUNCATE;
    struct stat info;
    if (fstat(fd, &info))
        return -1;
    rights &= l->handled & (S_ISDIR(info.st_mode) ? UINT64_MAX : for_files);
    struct landlock_path_beneath_attr rule = { .allowed_access = rights, .parent_fd = fd };
    int failed = (int)syscall(__NR_landlock_add_rule, l->ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule,
                              0);
    return failed && errno != EBADFD ? -1 : 0;
}

void landlock_allow(landlock *l, const char *path, unsigned access)
{
    if (l->ruleset < 0)
        return;
    if (access & ACCESS_MOVE && !(l->handled & FS_REFER)) { /* version 1 refuses every such move */
        errno = EOPNOTSUPP;
        give_up(l);
        return;
    }
    int fd = open(path, O_PATH | O_CLOEXEC);
    bool no_descriptor = fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
    if (no_descriptor || (fd >= 0 && add_rule(l, fd, rights_of(access))))
        give_up(l);
    if (fd >= 0)
        close(fd);
}

int landlock_enforce(landlock *l)
{
    if (l->ruleset >= 0 && syscall(__NR_landlock_restrict_self, l->ruleset, 0))
        give_up(l);
    if (l->ruleset >= 0)
        close(l->ruleset);
    l->ruleset = -1;
    return l->os;
}
