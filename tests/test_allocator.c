/* test_allocator.c - an allocator that checks the arguments of the library and caches large
 * blocks. */
#include "test_allocator.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD = 64, /* bytes of the head before each block, a multiple of any alignment */
    TAIL = 16, /* bytes after each block that must not change */
    TAIL_BYTE = 0x5A,
    FILLED = 16 << 10,   /* bytes to fill at each end of a block */
    LARGE = 64 << 10,    /* released blocks of at least this size are cached ... */
    TOO_LARGE = 4 << 20, /* ... and of less than this size */
    CACHED = 16          /* most blocks in the cache */
};

typedef struct head {
    size_t size, align;
} head;

static struct {
    pthread_mutex_t lock;
    head *at[CACHED];
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Functions of the address sanitizer, NULL in builds without it. */
__attribute__((weak)) void __asan_poison_memory_region(void const volatile *p, size_t size);
__attribute__((weak)) void __asan_unpoison_memory_region(void const volatile *p, size_t size);

/* Print a message and abort. An assertion of cmocka works on the main thread only. */
static void report_misuse(const char *message)
{
    fprintf(stderr, "the library misuses its allocator: %s\n", message);
    abort();
}

/* The address sanitizer has a tail of its own. */
static size_t tail_bytes(void)
{
    return __asan_poison_memory_region ? 0 : TAIL;
}

static void check_tail(const head *h)
{
    const uint8_t *tail = (const uint8_t *)h + HEAD + h->size;
    for (size_t i = 0; i < tail_bytes(); i++)
        if (tail[i] != TAIL_BYTE)
            report_misuse("a write past the end of a block");
}

static void fill(void *p, int byte, size_t size)
{
    size_t n = size < FILLED ? size : FILLED;
    memset(p, byte, n);
    memset((char *)p + size - n, byte, n);
}

/* Remove a block of exactly this size from the cache; return NULL if there is none. */
static head *take_cached(size_t size)
{
    head *h = NULL;
    pthread_mutex_lock(&cache.lock);
    for (size_t i = 0; i < CACHED && !h; i++)
        if (cache.at[i] && cache.at[i]->size == size) {
            h = cache.at[i];
            cache.at[i] = NULL;
        }
    pthread_mutex_unlock(&cache.lock);
    if (h && __asan_unpoison_memory_region)
        __asan_unpoison_memory_region((char *)h + HEAD, size);
    return h;
}

static void *new_block(size_t size, size_t align)
{
    void *block = size >= LARGE ? take_cached(size) : NULL;
    if (!block && posix_memalign(&block, HEAD, HEAD + size + tail_bytes()))
        report_misuse("it asks for more memory than there is");
    *(head *)block = (head){ size, align };
    fill((char *)block + HEAD, 0xA5, size);
    memset((char *)block + HEAD + size, TAIL_BYTE, tail_bytes());
    return (char *)block + HEAD;
}

/* Add a block to the cache and free the oldest block. */
static void add_to_cache(head *h)
{
    pthread_mutex_lock(&cache.lock);
    head *oldest = cache.at[CACHED - 1];
    memmove(cache.at + 1, cache.at, (CACHED - 1) * sizeof *cache.at);
    cache.at[0] = h;
    pthread_mutex_unlock(&cache.lock);
    free(oldest);
}

static void release(head *h)
{
    size_t size = h->size;
    check_tail(h);
    fill((char *)h + HEAD, 0xDD, size);
    if (size < LARGE || size >= TOO_LARGE) {
        free(h);
        return;
    }
    if (__asan_poison_memory_region)
        __asan_poison_memory_region((char *)h + HEAD, size);
    add_to_cache(h);
}

void *heft_test_resize(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    head *old = ptr ? (head *)(void *)((char *)ptr - HEAD) : NULL;
    (void)ctx;
    if (!align || align > HEAD || align & (align - 1))
        report_misuse("invalid alignment");
    if (old_size != (old ? old->size : 0))
        report_misuse("wrong size of a block");
    if (old && old->align != align)
        report_misuse("wrong alignment of a block");
    void *p = new_size ? new_block(new_size, align) : NULL;
    if (p && old)
        memcpy(p, ptr, old_size < new_size ? old_size : new_size);
    if (old)
        release(old);
    return p;
}

const heft_allocator __wrap_heft_libc_allocator = { .size = sizeof(heft_allocator),
                                                    .resize = heft_test_resize };
