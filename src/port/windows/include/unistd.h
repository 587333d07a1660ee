/* unistd.h - names of POSIX for the functions of posix.h. */
#ifndef HEFT_WINDOWS_UNISTD_H
#define HEFT_WINDOWS_UNISTD_H
#include "../posix.h"

#undef F_OK
#undef X_OK
#undef STDIN_FILENO
#undef STDOUT_FILENO
#undef STDERR_FILENO
#define F_OK          0
#define X_OK          1
#define STDIN_FILENO  0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2

/* Members of structures have these names, too: the symbols are renamed, not the words. */
int access(const char *path, int mode) __asm__("windows_access");
int close(int fd) __asm__("windows_close");
ssize_t read(int fd, void *buf, size_t len) __asm__("windows_read");
ssize_t write(int fd, const void *data, size_t len) __asm__("windows_write");
int unlink(const char *path) __asm__("windows_unlink");
int rmdir(const char *path) __asm__("windows_rmdir");
unsigned alarm(unsigned seconds) __asm__("windows_alarm");
void _exit(int code) __attribute__((noreturn));
int dup2(int from, int to) __asm__("_dup2");
int isatty(int fd) __asm__("windows_isatty");
int getpid(void) __asm__("_getpid");
off_t lseek(int fd, off_t at, int from) __asm__("_lseeki64");
#define fsync      windows_fsync
#define ftruncate  windows_ftruncate
#define linkat     windows_linkat
#define pread      windows_pread
#define pwrite     windows_pwrite
#define readlink   windows_readlink
#define readlinkat windows_readlinkat
#define renameat   windows_renameat
#define unlinkat   windows_unlinkat

#endif
