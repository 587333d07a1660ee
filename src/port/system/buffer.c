/* buffer.c - large buffers for weights, in whole huge pages where the system has huge pages. */
#include "port/port.h"

#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

static size_t mapped_bytes(size_t bytes)
{
    size_t mapped = (bytes + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
    return mapped < bytes ? 0 : mapped;
}

void *heft_buffer_new(size_t bytes)
{
    size_t mapped = mapped_bytes(bytes ? bytes : 1), head, tail;
    if (!mapped || mapped > SIZE_MAX - HUGE_PAGE)
        return NULL;
    uint8_t *p = mmap(NULL, mapped + HUGE_PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    head = (size_t)(0 - (uintptr_t)p) & (HUGE_PAGE - 1);
    tail = HUGE_PAGE - head;
    if (head)
        munmap(p, head);
    munmap(p + head + mapped, tail);
    /* The last bytes have small pages, so that they do not occupy a whole huge page. */
    madvise(p + head, bytes & ~(size_t)(HUGE_PAGE - 1), MADV_HUGEPAGE);
    return p + head;
}

void heft_buffer_free(void *p, size_t bytes)
{
    if (p)
        munmap(p, mapped_bytes(bytes ? bytes : 1));
}
