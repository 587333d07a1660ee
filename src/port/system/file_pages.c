/* file_pages.c - map files and announce the pages that are needed, on Linux. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "port/port.h"

enum { POPULATE_READ = 22 }; /* MADV_POPULATE_READ of Linux 5.14; musl does not define the name */

const heft_access heft_edit_access = HEFT_ACCESS_AUTO;

size_t heft_page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

bool heft_map_may_fault(int fd)
{
    (void)fd;
    return false; /* mapping_guard.c survives the faults */
}

void *heft_pages_map(int fd, uint64_t size, bool populates)
{
    int flags = MAP_SHARED | (populates ? MAP_POPULATE : 0);
    if (size > SIZE_MAX) {
        errno = ENOMEM;
        return NULL;
    }
    void *map = mmap(NULL, (size_t)size, PROT_READ, flags, fd, 0);
    return map == MAP_FAILED ? NULL : map;
}

void heft_pages_unmap(void *map, size_t size)
{
    munmap(map, size);
}

void heft_pages_request(int fd, uint64_t off, uint64_t len)
{
    posix_fadvise(fd, (off_t)off, (off_t)len, POSIX_FADV_WILLNEED);
}

bool heft_pages_populate(void *from, size_t len)
{
    return !madvise(from, len, POPULATE_READ);
}

void heft_pages_drop(void *from, size_t len)
{
    madvise(from, len, MADV_DONTNEED);
}
