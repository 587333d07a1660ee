/* test_allocator.c - an allocator that checks its caller, and keeps large blocks for the next request. */
#include "test_allocator.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD = 64,           /* before each block, so that the block is aligned for everything */
    FILLED = 16 << 10,   /* bytes at each end of a block that are filled */
    LARGE = 64 << 10,    /* a block of that size is kept when it is released ... */
    TOO_LARGE = 4 << 20, /* ... unless it has this size */
    KEPT = 16
};

typedef struct head {
    size_t size, align;
} head;

static struct {
    pthread_mutex_t lock;
    head *at[KEPT];
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Functions of the address sanitizer: NULL where there is none. */
__attribute__((weak)) void __asan_poison_memory_region(void const volatile *p, size_t size);
__attribute__((weak)) void __asan_unpoison_memory_region(void const volatile *p, size_t size);

/* Not an assertion of cmocka's: this may happen on any thread. */
static void broken(const char *what)
{
    fprintf(stderr, "the library misuses its allocator: %s\n", what);
    abort();
}

static void fill(void *p, int byte, size_t size)
{
    size_t n = size < FILLED ? size : FILLED;
    memset(p, byte, n);
    memset((char *)p + size - n, byte, n);
}

/* A kept block of exactly that size, or NULL. */
static head *take_kept(size_t size)
{
    head *h = NULL;
    pthread_mutex_lock(&kept.lock);
    for (size_t i = 0; i < KEPT && !h; i++)
        if (kept.at[i] && kept.at[i]->size == size) {
            h = kept.at[i];
            kept.at[i] = NULL;
        }
    pthread_mutex_unlock(&kept.lock);
    if (h && __asan_unpoison_memory_region)
        __asan_unpoison_memory_region((char *)h + HEAD, size);
    return h;
}

static void *new_block(size_t size, size_t align)
{
    void *block = size >= LARGE ? take_kept(size) : NULL;
    if (!block && posix_memalign(&block, HEAD, HEAD + size))
        broken("it wants more than there is");
    *(head *)block = (head){ size, align };
    fill((char *)block + HEAD, 0xA5, size);
    return (char *)block + HEAD;
}

/* Keeps a block; the one that was kept longest goes. */
static void keep(head *h)
{
    pthread_mutex_lock(&kept.lock);
    head *oldest = kept.at[KEPT - 1];
    memmove(kept.at + 1, kept.at, (KEPT - 1) * sizeof *kept.at);
    kept.at[0] = h;
    pthread_mutex_unlock(&kept.lock);
    free(oldest);
}

static void release(head *h)
{
    size_t size = h->size;
    fill((char *)h + HEAD, 0xDD, size);
    if (size < LARGE || size >= TOO_LARGE) {
        free(h);
        return;
    }
    if (__asan_poison_memory_region)
        __asan_poison_memory_region((char *)h + HEAD, size);
    keep(h);
}

void *heft_test_resize(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    head *old = ptr ? (head *)(void *)((char *)ptr - HEAD) : NULL;
    (void)ctx;
    if (!align || align > HEAD || align & (align - 1))
        broken("an alignment that is none");
    if (old_size != (old ? old->size : 0))
        broken("a size that the block never had");
    if (old && old->align != align)
        broken("an alignment that the block never had");
    void *p = new_size ? new_block(new_size, align) : NULL;
    if (p && old)
        memcpy(p, ptr, old_size < new_size ? old_size : new_size);
    if (old)
        release(old);
    return p;
}

const heft_allocator __wrap_heft_libc_allocator = { .size = sizeof(heft_allocator),
                                                    .resize = heft_test_resize };
