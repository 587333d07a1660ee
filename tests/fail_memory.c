/* fail_memory.c - allocation functions, preloaded into the command, that fail at a chosen call.
 * HEFT_FAIL_AT is the number of the call; with HEFT_FAIL_ON all later calls fail, too. When the
 * call is reached, a byte is written to the file descriptor HEFT_FAIL_TELL. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* glibc's implementations of the functions that this file replaces. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *__libc_memalign(size_t align, size_t size);

static atomic_ulong calls;
static unsigned long fail_at;
static int reached_fd = -1, keeps_failing;

__attribute__((constructor)) static void prepare(void)
{
    const char *at = getenv("HEFT_FAIL_AT"), *fd = getenv("HEFT_FAIL_TELL");
    fail_at = at ? strtoul(at, NULL, 10) : 0;
    reached_fd = fd ? atoi(fd) : -1;
    keeps_failing = getenv("HEFT_FAIL_ON") != NULL;
}

static int fails(void)
{
    unsigned long call = fail_at ? atomic_fetch_add(&calls, 1) + 1 : 0;
    if (!fail_at || call < fail_at || (call > fail_at && !keeps_failing))
        return 0;
    if (call == fail_at && write(reached_fd, "x", 1) != 1)
        _exit(120); /* the test would not notice that the call was reached */
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *ptr, size_t size)
{
    return fails() ? NULL : __libc_realloc(ptr, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    return fails() ? NULL : __libc_memalign(align, size);
}

void *memalign(size_t align, size_t size)
{
    return fails() ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
    *out = fails() ? NULL : __libc_memalign(align, size);
    return *out ? 0 : ENOMEM;
}
