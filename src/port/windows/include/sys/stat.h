/* sys/stat.h - names of POSIX for the functions of posix.h. */
#ifndef HEFT_WINDOWS_SYS_STAT_H
#define HEFT_WINDOWS_SYS_STAT_H
#include "../../posix.h"

#define S_ISDIR(mode)  (((mode)&WINDOWS_MODE_KIND) == WINDOWS_MODE_FOLDER)
#define S_ISREG(mode)  (((mode)&WINDOWS_MODE_KIND) == WINDOWS_MODE_FILE)
#define S_ISLNK(mode)  (((mode)&WINDOWS_MODE_KIND) == WINDOWS_MODE_LINK)
#define S_ISFIFO(mode) (((mode)&WINDOWS_MODE_KIND) == WINDOWS_MODE_PIPE)
#define S_ISCHR(mode)  (((mode)&WINDOWS_MODE_KIND) == WINDOWS_MODE_DEVICE)
#define S_ISSOCK(mode) 0
enum { S_IWUSR = 0200, S_IWGRP = 020, S_IWOTH = 02 };
#define fstat   windows_fstat
#define fstatat windows_fstatat
#define lstat   windows_lstat
#define mkdir   windows_mkdir
#define mkdirat windows_mkdirat
#define stat    windows_stat

#endif
