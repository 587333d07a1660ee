/* posix.h - the calls of POSIX that Heft uses, over the calls of Windows.
 *
 * The headers in `include` stand for the headers of POSIX and give these functions the names of
 * POSIX.  Paths are UTF-8; slashes and backslashes separate components.  A descriptor belongs to
 * the C library and has a handle.  The functions set errno. */
#ifndef HEFT_WINDOWS_POSIX_H
#define HEFT_WINDOWS_POSIX_H
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <wchar.h>

/* ---- files, windows_files.c ---- */

enum {
    WINDOWS_WRITE = 1, /* flags of windows_openat(), with the values of the C library */
    WINDOWS_READ_WRITE = 2,
    WINDOWS_CREATE = 0x100,
    WINDOWS_TRUNCATE = 0x200,
    WINDOWS_EXCLUSIVE = 0x400,
    WINDOWS_CLOEXEC = 0x100000, /* no handle is inherited */
    WINDOWS_NONBLOCK = 0x200000,
    WINDOWS_NO_FOLLOW = 0x400000, /* fail with ELOOP for a symbolic link */
    WINDOWS_FOLDER = 0x800000,
    WINDOWS_PATH_ONLY = 0x1000000, /* neither to be read nor written */
    WINDOWS_UNNAMED = 0x2000000,   /* refused with EINVAL */
};
/* errno of a path with a reserved name; no number of the C library is as large. */
enum { WINDOWS_RESERVED = 1000 };
enum { WINDOWS_HERE = -100 }; /* in place of a folder: the current folder */
enum { WINDOWS_DUPLICATE = 1030, WINDOWS_GET_FLAGS = 1 }; /* flags of windows_fcntl() */
enum {
    WINDOWS_MODE_KIND = 0xF000,
    WINDOWS_MODE_PIPE = 0x1000,
    WINDOWS_MODE_DEVICE = 0x2000,
    WINDOWS_MODE_FOLDER = 0x4000,
    WINDOWS_MODE_FILE = 0x8000,
    WINDOWS_MODE_LINK = 0xA000,
};
enum { WINDOWS_STAT_LINK = 0x100 };     /* flag of windows_fstatat(): the link itself */
enum { WINDOWS_REMOVE_FOLDER = 0x200 }; /* flag of windows_unlinkat() */

struct windows_stat {
    uint64_t st_dev, st_ino; /* serial number of the volume, index of the file */
    unsigned st_mode, st_nlink, st_uid, st_gid;
    int64_t st_size, st_blocks;
    struct timespec st_mtim, st_ctim;
};

int windows_open(const char *path, int flags, ...);
int windows_openat(int dir, const char *path, int flags, ...);
int windows_close(int fd);
ssize_t windows_read(int fd, void *buf, size_t len);
ssize_t windows_write(int fd, const void *data, size_t len);
ssize_t windows_pread(int fd, void *buf, size_t len, off_t at);
ssize_t windows_pwrite(int fd, const void *data, size_t len, off_t at);
int windows_ftruncate(int fd, off_t size);
int windows_fsync(int fd);
int windows_lock(int fd);
int windows_fcntl(int fd, int command, ...);
int windows_fstat(int fd, struct windows_stat *out);
int windows_stat(const char *path, struct windows_stat *out);
int windows_lstat(const char *path, struct windows_stat *out);
int windows_fstatat(int dir, const char *path, struct windows_stat *out, int flags);
FILE *windows_fopen(const char *path, const char *mode);
int windows_mkstemp(char *path);

/* ---- names, windows_names.c ---- */

int windows_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int windows_unlinkat(int dir, const char *path, int flags);
int windows_unlink(const char *path);
int windows_renameat(int from_dir, const char *from, int to_dir, const char *to);
int windows_rename_new(int dir, const char *from, const char *to); /* EEXIST if `to` exists */
int windows_mkdir(const char *path, int mode);
int windows_rmdir(const char *path);
int windows_mkdirat(int dir, const char *path, int mode);
int windows_access(const char *path, int mode);
char *windows_realpath(const char *path, char *out);
ssize_t windows_readlinkat(int dir, const char *path, char *out, size_t size);
ssize_t windows_readlink(const char *path, char *out, size_t size);

struct windows_dirent {
    char d_name[3 * 260];
};
typedef struct windows_dir windows_dir;
windows_dir *windows_opendir(const char *path);
windows_dir *windows_fdopendir(int fd); /* owns fd after success */
struct windows_dirent *windows_readdir(windows_dir *d);
int windows_closedir(windows_dir *d);
/* Set *out to an array of the entries in the order of the bytes; return the number, or -1. */
int windows_scandir(const char *path, struct windows_dirent ***out);

/* ---- text, windows_text.c ---- */

const char *windows_getenv(const char *name);
size_t windows_mbrtowc(wchar_t *out, const char *text, size_t len, mbstate_t *state);
int windows_wcwidth(wchar_t c);
char *windows_strndup(const char *text, size_t len);
void *windows_memmem(const void *in, size_t len, const void *what, size_t what_len);
void windows_erase(void *block, size_t size);
int windows_isatty(int fd);
unsigned windows_alarm(unsigned seconds); /* no alarm */
int windows_strerror_r(int os, char *out, size_t size);
int windows_setenv(const char *name, const char *value, int replaces);

#endif
