/* renameat2.c - the system call renameat2(), for C libraries such as musl 1.2.3. */
#include "port/system/renameat2.h"

#include <sys/syscall.h>
#include <unistd.h>

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}
