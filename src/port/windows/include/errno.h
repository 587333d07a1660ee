/* errno.h - names of POSIX for the functions of posix.h. */
#ifndef HEFT_WINDOWS_ERRNO_H
#define HEFT_WINDOWS_ERRNO_H
#include_next <errno.h>

#ifndef EDQUOT
#define EDQUOT 122
#endif
#ifndef ESTALE
#define ESTALE 1001 /* no call of Windows fails with this number */
#endif

#endif
