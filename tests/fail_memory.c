/* fail_memory.c - preloaded into the command: the call for memory whose number is HEFT_FAIL_AT gives nothing, nor
 * with HEFT_FAIL_ON any later one.  A byte on the descriptor HEFT_FAIL_TELL says that it came to that call. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* glibc's own, behind the names that are taken here. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *__libc_memalign(size_t align, size_t size);

static atomic_ulong calls;
static unsigned long fail_at;
static int tell = -1, fails_on;

__attribute__((constructor)) static void prepare(void)
{
    const char *at = getenv("HEFT_FAIL_AT"), *fd = getenv("HEFT_FAIL_TELL");
    fail_at = at ? strtoul(at, NULL, 10) : 0;
    tell = fd ? atoi(fd) : -1;
    fails_on = getenv("HEFT_FAIL_ON") != NULL;
}

static int fails(void)
{
    unsigned long call = fail_at ? atomic_fetch_add(&calls, 1) + 1 : 0;
    if (!fail_at || call < fail_at || (call > fail_at && !fails_on))
        return 0;
    if (call == fail_at && write(tell, "x", 1) != 1)
        _exit(120); /* the test would not know */
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
