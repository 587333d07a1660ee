/* stdlib.h - names of POSIX for the functions of posix.h. */
#ifndef HEFT_WINDOWS_STDLIB_H
#define HEFT_WINDOWS_STDLIB_H
#include_next <stdlib.h>

#include "../posix.h"

#define getenv(name)        ((char *)(uintptr_t)windows_getenv(name))
#define secure_getenv(name) getenv(name)
#define setenv              windows_setenv
#define mkstemp             windows_mkstemp
#define realpath            windows_realpath
#undef MB_CUR_MAX
#define MB_CUR_MAX ((size_t)4)

/* Functions of string.h; every user of string.h includes this header, too. */
#define memmem                      windows_memmem
#define strerror_r                  windows_strerror_r
#define strndup                     windows_strndup
#define explicit_bzero(block, size) windows_erase(block, size)

#endif
