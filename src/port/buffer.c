/* buffer.c - memory for weights: whole huge pages, where the system has them. */
#include "port/port.h"

#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

static size_t mapped_bytes(size_t bytes)
{
    size_t len = (bytes + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
    return len < bytes ? 0 : len;
}

void *heft_buffer_new(size_t bytes)
{
    size_t len = mapped_bytes(bytes ? bytes : 1), before, behind;
    if (!len || len > SIZE_MAX - HUGE_PAGE)
        return NULL;
    uint8_t *p = mmap(NULL, len + HUGE_PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    before = (size_t)(0 - (uintptr_t)p) & (HUGE_PAGE - 1);
    behind = HUGE_PAGE - before;
    if (before)
        munmap(p, before);
    munmap(p + before + len, behind);
    madvise(p + before, len, MADV_HUGEPAGE);
    return p + before;
}

void heft_buffer_free(void *p, size_t bytes)
{
    if (p)
        munmap(p, mapped_bytes(bytes ? bytes : 1));
}
