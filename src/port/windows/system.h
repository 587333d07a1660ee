/* system.h - functions that the files of src/port/windows share. */
#ifndef HEFT_WINDOWS_SYSTEM_H
#define HEFT_WINDOWS_SYSTEM_H
#include <windows.h>

#include "port/windows/posix.h"

/* Set errno from the last error of Windows; return -1. */
int windows_fail(void);
/* Return the handle of a descriptor; INVALID_HANDLE_VALUE with errno EBADF. */
HANDLE windows_handle(int fd);
/* Return a descriptor that owns the handle; -1, and the handle closed, after a failure. */
int windows_descriptor(HANDLE handle, int flags);
/* Return the absolute path in UTF-16 with the prefix of long paths, malloc'ed; NULL with errno
 * set. */
wchar_t *windows_path(int dir, const char *path);
/* Return UTF-8 of at most *len units, malloc'ed, with a zero; NULL with errno set. */
char *windows_utf8(const wchar_t *text, int len);
wchar_t *windows_utf16(const char *text);
/* Write the status of an open handle. */
int windows_describe(HANDLE handle, struct windows_stat *out);
/* Return true if Windows reserves the name of a file or folder, of len bytes. */
bool windows_is_reserved(const char *name, size_t len);

#endif
