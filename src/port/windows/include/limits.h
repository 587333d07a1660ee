/* limits.h - names of POSIX for the functions of posix.h. */
#ifndef HEFT_WINDOWS_LIMITS_H
#define HEFT_WINDOWS_LIMITS_H
#include_next <limits.h>

#undef PATH_MAX
#define PATH_MAX 32768 /* bytes; paths have at most 32767 UTF-16 units */
#undef NAME_MAX
#define NAME_MAX 255

#endif
