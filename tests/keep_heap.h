/* keep_heap.h - for tests with millions of buffers. */
#ifndef KEEP_HEAP_H
#define KEEP_HEAP_H
#include <malloc.h>

/* Let glibc take large blocks from the heap, without a system call for each block. */
static inline void keep_heap(void)
{
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

#endif
