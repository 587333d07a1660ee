/* staged.c - a new file that gets its final name once it is complete.
 *
 * The file is unnamed if the file system supports O_TMPFILE, so that a kill leaves nothing behind.
 * Otherwise, and for the moment in which it replaces another file, it has a temporary name:
 * ".TARGET.XXXXXXXX.heft-new" with eight hexadecimal digits.  The file is locked (flock) while it
 * is open.  So a file with a temporary name that can be locked was left by a killed program, and
 * the next program that writes into the directory removes it. */
#include "port/save/sink_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TARGET_BYTES = 200, MAX_TRIES = 100 }; /* bytes used of the target's name */

/* ---- names ---- */

static void choose_name(char name[NAME_MAX + 1], const char *target)
{
    uint32_t r;
    heft_os_entropy(&r, sizeof r);
    r ^= (uint32_t)getpid();
    snprintf(name, NAME_MAX + 1, ".%.*s.%08x.heft-new", TARGET_BYTES, target, (unsigned)r);
}

/* ---- creating ---- */

/* Create and lock a file with a temporary name.  Between creation and lock, another program may
 * take the file for a stale one and lock or remove it; then try another name.  Where locks do not
 * work, no program removes files. */
static int open_named(heft_staged *s, const char *target, mode_t mode)
{
    struct stat info;
    int os = EEXIST;
    for (int attempt = 0; os == EEXIST && attempt < MAX_TRIES; attempt++) {
        choose_name(s->name, target);
        s->fd = heft_disk_create(s->disk, s->dir, s->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                                 mode);
        os = s->fd < 0 ? errno : 0;
        if (os)
            continue;
        bool is_locked = !heft_disk_lock(s->disk, s->fd) || errno != EWOULDBLOCK;
        if (is_locked && (fstat(s->fd, &info) || info.st_nlink))
            continue;
        s->disk->close(s->fd);
        s->fd = -1;
        os = EEXIST;
    }
    if (os)
        s->name[0] = '\0';
    return os;
}

int heft_staged_open(heft_staged *s, const heft_disk *d, int dir, const char *target, mode_t mode)
{
    *s = (heft_staged){ .disk = d, .dir = dir, .fd = -1 };
    if (!access("/proc/self/fd", X_OK)) /* needed to link the file to a name */
        s->fd = heft_disk_create(d, dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
    if (s->fd < 0)
        return open_named(s, target, mode);
    (void)heft_disk_lock(d, s->fd); /* no other program has the file open */
    return 0;
}

/* ---- committing ---- */

int heft_staged_commit(heft_staged *s, const char *target)
{
    const heft_disk *d = s->disk;
    if (!s->name[0])
        return d->name(s->fd, s->dir, target) ? errno : 0;
    if (!d->rename_new(s->dir, s->name, target)) {
        s->name[0] = '\0';
        return 0;
    }
    if (errno != EINVAL) /* EINVAL: no support for RENAME_NOREPLACE */
        return errno;
    return d->link(s->dir, s->name, target) ? errno : 0; /* closing removes the temporary name */
}

int heft_staged_replace(heft_staged *s, const char *target)
{
    int os = s->name[0] ? 0 : EEXIST;
    for (int attempt = 0; os == EEXIST && attempt < MAX_TRIES; attempt++) {
        choose_name(s->name, target);
        os = s->disk->name(s->fd, s->dir, s->name) ? errno : 0;
    }
    if (!os && s->disk->rename(s->dir, s->name, target))
        return errno; /* closing removes the temporary name */
    s->name[0] = '\0';
    return os;
}

void heft_staged_drop_name(heft_staged *s)
{
    if (s->name[0])
        s->disk->remove(s->dir, s->name);
    s->name[0] = '\0';
}

int heft_staged_close(heft_staged *s)
{
    int os = 0;
    heft_staged_drop_name(s); /* before closing releases the lock */
    if (s->fd >= 0 && s->disk->close(s->fd) && errno != EINTR)
        os = errno;
    s->fd = -1;
    return os;
}

/* ---- removing temporary files of killed programs ---- */

typedef struct stale_search {
    const heft_disk *disk;
    int dir;
    const char *target;
} stale_search;

/* Return true if [p, end) consists of one to sixteen hexadecimal digits. */
static bool is_hex_number(const char *p, const char *end)
{
    size_t n = strspn(p, "0123456789abcdef");
    return n && n <= 16 && p + n == end;
}

/* Return true for ".TARGET.DIGITS.heft-new" with any target and, from older versions,
 * ".TARGET.DIGITS.tmp" with eight digits and this target. */
static bool is_temporary(const char *name, const char *target)
{
    const char *suffix = strrchr(name, '.'), *number = suffix;
    size_t len = strnlen(target, TARGET_BYTES);
    if (name[0] != '.')
        return false;
    if (!strcmp(suffix, ".heft-new")) {
        while (number > name + 1 && number[-1] != '.')
            number--;
        return number > name + 2 && is_hex_number(number, suffix);
    }
    return !strcmp(suffix, ".tmp") && suffix == name + 1 + len + 1 + 8 &&
           !memcmp(name + 1, target, len) && name[1 + len] == '.' &&
           is_hex_number(name + 2 + len, suffix);
}

static void remove_if_stale(void *arg, const char *name)
{
    const stale_search *search = arg;
    struct stat info;
    int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    if (!is_temporary(name, search->target))
        return;
    int fd = heft_open_at(search->dir, name, O_RDWR | flags); /* NFS locks need write access */
    if (fd < 0)
        fd = heft_open_at(search->dir, name, O_RDONLY | flags);
    if (fd < 0)
        return;
    if (!fstat(fd, &info) && S_ISREG(info.st_mode) && !heft_disk_lock(search->disk, fd))
        search->disk->remove(search->dir, name);
    close(fd);
}

void heft_staged_remove_stale(const heft_disk *d, int dir, const char *target)
{
    stale_search search = { d, dir, target };
    heft_error ignored; /* if the directory cannot be listed, stale files stay */
    (void)!heft_folder_list(dir, remove_if_stale, &search, &ignored);
}
