/* system_memory.c - blocks of memory from Linux. */
#include <stdlib.h>
#include <sys/mman.h>

#include "port/port.h"

enum {
    /* The size on most systems; with a different size MADV_HUGEPAGE helps less. */
    HUGE_PAGE = 2 << 20,
    HUGE_FROM = 3 << 20 /* rounding up to huge pages may waste a quarter */
};

static size_t whole_pages(size_t size)
{
    return size < HUGE_FROM ? size : (size + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
}

/* Huge pages: one page fault instead of 512.  The length is rounded up to whole huge pages, so
 * that the system aligns the mapping and mremap() needs no copy to grow. */
void *heft_large_map(void *old, size_t old_size, size_t new_size)
{
    size_t len = whole_pages(new_size);
    if (len < new_size)
        return NULL;
    void *p = old ? mremap(old, whole_pages(old_size), len, MREMAP_MAYMOVE)
                  : mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (len >= HUGE_FROM)
        madvise(p, len, MADV_HUGEPAGE);
    return p;
}

void heft_large_unmap(void *block, size_t size)
{
    munmap(block, whole_pages(size));
}

void *heft_aligned_new(size_t align, size_t size)
{
    void *block = NULL;
    return posix_memalign(&block, align, size) ? NULL : block;
}

void heft_aligned_free(void *block)
{
    free(block);
}
