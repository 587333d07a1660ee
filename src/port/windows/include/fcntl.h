/* fcntl.h - names of POSIX for the functions of posix.h. */
#ifndef HEFT_WINDOWS_FCNTL_H
#define HEFT_WINDOWS_FCNTL_H
#include "../posix.h"

enum {
    O_RDONLY = 0,
    O_WRONLY = WINDOWS_WRITE,
    O_RDWR = WINDOWS_READ_WRITE,
    O_CREAT = WINDOWS_CREATE,
    O_TRUNC = WINDOWS_TRUNCATE,
    O_EXCL = WINDOWS_EXCLUSIVE,
    O_CLOEXEC = WINDOWS_CLOEXEC,
    O_NONBLOCK = WINDOWS_NONBLOCK,
    O_NOCTTY = 0,
    O_NOFOLLOW = WINDOWS_NO_FOLLOW,
    O_DIRECTORY = WINDOWS_FOLDER,
    O_PATH = WINDOWS_PATH_ONLY,
    O_TMPFILE = WINDOWS_UNNAMED,
};
enum { AT_FDCWD = WINDOWS_HERE, AT_SYMLINK_NOFOLLOW = WINDOWS_STAT_LINK };
enum { AT_REMOVEDIR = WINDOWS_REMOVE_FOLDER };
enum { F_DUPFD_CLOEXEC = WINDOWS_DUPLICATE, F_GETFD = WINDOWS_GET_FLAGS };

/* Members of structures have this name, too: the symbol is renamed, not the word. */
int open(const char *path, int flags, ...) __asm__("windows_open");
#define fcntl  windows_fcntl
#define openat windows_openat

#endif
